/** One elected broker looks every second, and after events, at who has gone silent, and does what liveness.ts says. */
import { and, eq, exists, inArray, ne } from "drizzle-orm";
import { holdLeadership } from "#server/broker/reconciler/leadership.ts";
import { type Context, inTransaction, systemContext } from "#server/context.ts";
import type { Database, OpenDatabase } from "#server/db/client.ts";
import {
  gpuServers,
  leaseRequests,
  leases,
  teamPolicies,
  workspaceOwners,
  workspaces,
} from "#server/db/schema/index.ts";
import { type Live, notify } from "#server/live.ts";
import type { Logger } from "#server/log.ts";
import { closeLost, lose } from "#server/services/gpu-server/lose.ts";
import { recordStates } from "#server/services/gpu-server/record-states.ts";
import { tellOfBack, tellOfLess } from "#server/services/gpu-server/tell-guarantees.ts";
import { advanceOverdue } from "#server/services/lease/advance-overdue.ts";
import { beginEnd } from "#server/services/lease/ending.ts";
import { expireRequest } from "#server/services/lease/expire-request.ts";
import { lastWorkOf } from "#server/services/lease/holder.ts";
import { DEFAULT_IDLE_SECONDS } from "#server/services/lease/policy.ts";
import { settleUsage } from "#server/services/lease/settle-usage.ts";
import { warnOfIdle } from "#server/services/lease/warn-of-idle.ts";
import { sweepNotices } from "#server/services/notice/sweep.ts";
import { warnOfBudgets } from "#server/services/team/warn-of-budgets.ts";
import { settleStranded } from "#server/services/utilisation/settle-stranded.ts";
import { type Facts, judge, type Measure } from "./liveness.ts";
import { startRounds } from "./rounds.ts";

const EVERY_MS = 1_000;
/** Past use is settled, and budgets are looked at, as often. */
const SETTLE_MS = 60_000;
/** Idle leases are looked at as often, to warn their holders. */
const WARN_MS = 5_000;

/** Starts the loop; `stop` waits for the round under way. */
export function startLivenessLoop(options: { database: OpenDatabase; live: Live; log: Logger }): {
  stop: () => Promise<void>;
} {
  const { database, live, log } = options;
  const leadership = holdLeadership(database.sql, log, "liveness");
  let watchingSince: number | undefined;
  /** When the servers were last heard whose loss has been told: it need not be looked at again. */
  const toldLosses = new Map<string, number>();
  let settledAt = 0;
  let warnedAt = 0;

  const round = async (): Promise<void> => {
    try {
      if (!(await leadership.isLeader())) {
        watchingSince = undefined;
        return;
      }
      watchingSince ??= Date.now();
      const facts = await loadFacts(database.db, toldLosses);
      for (const measure of judge(facts, Date.now(), watchingSince)) {
        log.info(measure, "liveness");
        // One that cannot be carried out is tried again in the next round and holds up no other.
        await take(systemContext(database.db), measure)
          .then(() => {
            if (measure.do === "tell-of-loss") toldLosses.set(measure.serverId, measure.lastHeard);
          })
          .catch((error: unknown) => log.warn({ err: error, ...measure }, "a measure could not be taken"));
      }
      await advanceOverdue(systemContext(database.db));
      await recordStates(systemContext(database.db));
      if (Date.now() - warnedAt >= WARN_MS) {
        warnedAt = Date.now();
        await warnOfIdle(systemContext(database.db));
      }
      if (Date.now() - settledAt >= SETTLE_MS) {
        settledAt = Date.now();
        await settleUsage(systemContext(database.db));
        await warnOfBudgets(systemContext(database.db));
        await tellOfBack(systemContext(database.db));
        await sweepNotices(systemContext(database.db));
        // A figure alone: where it cannot be had, nothing else waits for it.
        await settleStranded(systemContext(database.db)).catch((error: unknown) =>
          log.warn({ err: error }, "what is stranded could not be added up"),
        );
      }
    } catch (error) {
      // What was not heard meanwhile is nobody's fault: the clocks start again.
      watchingSince = undefined;
      log.warn({ err: error }, "liveness could not look");
    }
  };

  const rounds = startRounds(EVERY_MS, round);
  const unsubscribe = live.subscribe(["workspace"], rounds.wake);
  return {
    stop: async () => {
      unsubscribe();
      await rounds.stop();
      await leadership.release().catch(() => undefined);
    },
  };
}

/** Does one measure; each service checks again under its lock that it still applies. */
async function take(ctx: Context, measure: Measure): Promise<void> {
  switch (measure.do) {
    case "end-lease":
      await inTransaction(ctx, async (tx) => {
        const { leaseId, reason, mode, note } = measure;
        await beginEnd(tx, [leaseId], { reason, mode, ...(note === undefined ? {} : { note }) });
      });
      return;
    case "stop-parking":
      await ctx.db
        .update(leases)
        .set({ endMode: "kill" })
        .where(and(eq(leases.id, measure.leaseId), eq(leases.state, "ending")));
      await notify(ctx.db, "lease", measure.leaseId);
      return;
    case "leave-queue":
      await expireRequest(ctx, measure.requestId, measure.state);
      return;
    case "lose-server":
      await lose(ctx, { serverId: measure.serverId, lastHeard: new Date(measure.lastHeard) });
      return;
    case "close-server":
      await closeLost(ctx, { serverId: measure.serverId });
      return;
    case "tell-of-loss":
      await tellOfLess(ctx, { serverId: measure.serverId, lastHeard: new Date(measure.lastHeard) });
  }
}

/** What the judgement needs. An idle installation reads four empty sets a second. */
async function loadFacts(db: Database, toldLosses: ReadonlyMap<string, number>): Promise<Facts> {
  const held = db
    .select({ id: leases.id })
    .from(leases)
    .where(and(eq(leases.serverId, gpuServers.id), ne(leases.state, "ended")));
  const [leaseRows, requestRows, serverRows] = await Promise.all([
    db
      .select({ lease: leases, desired: workspaces.desired, idleSeconds: teamPolicies.idleSeconds })
      .from(leases)
      .leftJoin(workspaces, eq(workspaces.id, leases.workspaceId))
      .leftJoin(teamPolicies, eq(teamPolicies.teamId, leases.teamId))
      .where(inArray(leases.state, ["granted", "active", "unreachable", "ending"])),
    db
      .select({ request: leaseRequests, desired: workspaces.desired })
      .from(leaseRequests)
      .innerJoin(workspaces, eq(workspaces.id, leaseRequests.workspaceId))
      .where(eq(leaseRequests.state, "queued")),
    db
      .select({ server: gpuServers, holdsLeases: exists(held).mapWith(Boolean) })
      .from(gpuServers)
      .where(inArray(gpuServers.state, ["online", "draining", "lost"])),
  ]);
  const unclaimed = leaseRows.filter(({ lease }) => lease.claimedAt === null).map(({ lease }) => lease.workspaceId);
  const ownerRows =
    unclaimed.length === 0
      ? []
      : await db.select().from(workspaceOwners).where(inArray(workspaceOwners.workspaceId, unclaimed));
  return {
    parking: leaseRows.flatMap(({ lease }) =>
      lease.state === "ending" && lease.endMode === "park"
        ? [{ id: lease.id, since: (lease.endingAt ?? lease.grantedAt).getTime() }]
        : [],
    ),
    leases: leaseRows.flatMap(({ lease, desired, idleSeconds }) => {
      if (lease.state === "ending" || lease.state === "ended") return [];
      return {
        id: lease.id,
        requestId: lease.requestId,
        state: lease.state,
        workspaceId: lease.workspaceId,
        serverId: lease.serverId,
        owner: lease.owner,
        grantedAt: lease.grantedAt.getTime(),
        claimedAt: lease.claimedAt?.getTime() ?? null,
        disconnectedAt: lease.disconnectedAt?.getTime() ?? null,
        expiresAt: lease.expiresAt.getTime(),
        releaseAt: lease.releaseAt?.getTime() ?? null,
        forUpdate: lease.noticeFor === null && lease.releaseAt !== null,
        lastWorkAt: lastWorkOf([lease]).getTime(),
        idleMs: (idleSeconds ?? DEFAULT_IDLE_SECONDS) * 1000,
        workspaceRuns: desired === "running",
      };
    }),
    requests: requestRows.map(({ request, desired }) => ({
      id: request.id,
      lastPolledAt: request.lastPolledAt.getTime(),
      waitUntil: request.waitUntil.getTime(),
      workspaceRuns: desired === "running",
    })),
    servers: serverRows.flatMap(({ server, holdsLeases }) => {
      if (server.state === "joining" || server.state === "removed") return [];
      const lastSeenAt = server.lastSeenAt?.getTime() ?? 0;
      const isTold = toldLosses.get(server.id) === lastSeenAt;
      return { id: server.id, state: server.state, lastSeenAt, holdsLeases, isTold };
    }),
    owners: ownerRows.map((row) => ({
      workspaceId: row.workspaceId,
      reportedAt: row.reportedAt.getTime(),
      alive: row.alive,
    })),
  };
}
