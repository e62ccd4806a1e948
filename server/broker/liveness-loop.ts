/** One elected broker looks every second, and after events, at who has gone silent, and does what liveness.ts says. */
import { and, eq, isNull } from "drizzle-orm";
import { holdLeadership } from "#server/broker/reconciler/leadership.ts";
import { type Context, inTransaction, systemContext } from "#server/context.ts";
import type { OpenDatabase } from "#server/db/client.ts";
import { leases } from "#server/db/schema/index.ts";
import { type Live, notify } from "#server/live.ts";
import type { Logger } from "#server/log.ts";
import { closeLost, lose } from "#server/services/gpu-server/lose.ts";
import { recordStates } from "#server/services/gpu-server/record-states.ts";
import { tellOfBack, tellOfLess } from "#server/services/gpu-server/tell-guarantees.ts";
import { advanceOverdue } from "#server/services/lease/advance-overdue.ts";
import { beginEnd } from "#server/services/lease/ending.ts";
import { expireRequest } from "#server/services/lease/expire-request.ts";
import { settleUsage } from "#server/services/lease/settle-usage.ts";
import { warnOfIdle } from "#server/services/lease/warn-of-idle.ts";
import { sweepNotices } from "#server/services/notice/sweep.ts";
import { warnOfBudgets } from "#server/services/team/warn-of-budgets.ts";
import { settleStranded } from "#server/services/utilisation/settle-stranded.ts";
import { Listening } from "./listening.ts";
import { judge, type Measure } from "./liveness.ts";
import { loadFacts, lockFactsOf } from "./liveness-facts.ts";
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
  const listening = new Listening();
  const looking = listening.start();
  /** When the servers were last heard whose loss has been told: it need not be looked at again. */
  const toldLosses = new Map<string, number>();
  // By a clock that nobody sets.
  let settledAt = Number.NEGATIVE_INFINITY;
  let warnedAt = Number.NEGATIVE_INFINITY;

  const round = async (): Promise<void> => {
    try {
      if (!(await leadership.isLeader())) {
        listening.interrupt();
        return;
      }
      const facts = await loadFacts(database.db, toldLosses);
      const now = Date.now();
      const since = listening.since(now);
      for (const measure of judge(facts, now, since)) {
        log.info(measure, "liveness");
        // One that cannot be carried out is tried again in the next round and holds up no other.
        await take(systemContext(database.db), measure, since)
          .then(() => {
            if (measure.do === "tell-of-loss") toldLosses.set(measure.serverId, measure.lastHeard);
          })
          .catch((error: unknown) => log.warn({ err: error, ...measure }, "a measure could not be taken"));
      }
      await advanceOverdue(systemContext(database.db));
      await recordStates(systemContext(database.db));
      if (performance.now() - warnedAt >= WARN_MS) {
        warnedAt = performance.now();
        await warnOfIdle(systemContext(database.db));
      }
      if (performance.now() - settledAt >= SETTLE_MS) {
        settledAt = performance.now();
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
      listening.interrupt();
      log.warn({ err: error }, "liveness could not look");
    }
  };

  const rounds = startRounds(EVERY_MS, round);
  const unsubscribe = live.subscribe(["workspace"], rounds.wake);
  return {
    stop: async () => {
      unsubscribe();
      looking.stop();
      await rounds.stop();
      await leadership.release().catch(() => undefined);
    },
  };
}

/** Does one measure; each service checks again under its lock that it still applies. */
async function take(ctx: Context, measure: Measure, watchingSince: number): Promise<void> {
  switch (measure.do) {
    case "end-lease":
      await inTransaction(ctx, async (tx) => {
        // It may have been extended meanwhile, may have worked, or be left to its holder after all.
        const facts = await lockFactsOf(tx.db, measure.requestId);
        const again = judge(facts, Date.now(), watchingSince).find(
          (one) => one.do === "end-lease" && one.leaseId === measure.leaseId,
        );
        if (again?.do !== "end-lease") return;
        const { leaseId, reason, mode, note } = again;
        await beginEnd(tx, [leaseId], { reason, mode, ...(note === undefined ? {} : { note }) });
      });
      return;
    case "give-claim-chance":
      await ctx.db
        .update(leases)
        .set({ claimChanceAt: ctx.now() })
        .where(and(eq(leases.id, measure.leaseId), isNull(leases.claimedAt), isNull(leases.claimChanceAt)));
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
