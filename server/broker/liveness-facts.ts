/** What the judgement of liveness.ts needs, from the tables. */
import { and, eq, exists, inArray, ne, type SQL } from "drizzle-orm";
import type { Database, Transaction } from "#server/db/client.ts";
import {
  gpuServers,
  leaseRequests,
  leases,
  teamPolicies,
  workspaceOwners,
  workspaces,
} from "#server/db/schema/index.ts";
import { lastWorkOf, leavesWithServer } from "#server/services/lease/holder.ts";
import { DEFAULT_IDLE_SECONDS } from "#server/services/lease/policy.ts";
import type { Facts } from "./liveness.ts";

type Db = Database | Transaction;

/** All of it. An idle installation reads four empty sets a second. */
export async function loadFacts(db: Database, toldLosses: ReadonlyMap<string, number>): Promise<Facts> {
  const held = db
    .select({ id: leases.id })
    .from(leases)
    .where(and(eq(leases.serverId, gpuServers.id), ne(leases.state, "ended")));
  const [ofLeases, requestRows, serverRows] = await Promise.all([
    loadLeaseFacts(db),
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
  return {
    ...ofLeases,
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
  };
}

/** All parts of one lease alone, whose rows are the caller's until the transaction ends. */
export async function lockFactsOf(tx: Transaction, requestId: string): Promise<Facts> {
  const ofRequest = eq(leases.requestId, requestId);
  await tx.select({ id: leases.id }).from(leases).where(ofRequest).orderBy(leases.id).for("update");
  return { ...(await loadLeaseFacts(tx, ofRequest)), requests: [], servers: [] };
}

async function loadLeaseFacts(db: Db, which?: SQL): Promise<Pick<Facts, "leases" | "parking" | "owners">> {
  const rows = await db
    .select({ lease: leases, desired: workspaces.desired, idleSeconds: teamPolicies.idleSeconds })
    .from(leases)
    .leftJoin(workspaces, eq(workspaces.id, leases.workspaceId))
    .leftJoin(teamPolicies, eq(teamPolicies.teamId, leases.teamId))
    .where(and(which, inArray(leases.state, ["granted", "active", "unreachable", "ending"])));
  const unclaimed = rows.filter(({ lease }) => lease.claimedAt === null).map(({ lease }) => lease.workspaceId);
  const owners =
    unclaimed.length === 0
      ? []
      : await db.select().from(workspaceOwners).where(inArray(workspaceOwners.workspaceId, unclaimed));
  return {
    parking: rows.flatMap(({ lease }) =>
      lease.state === "ending" && lease.endMode === "park"
        ? [{ id: lease.id, since: (lease.endingAt ?? lease.grantedAt).getTime() }]
        : [],
    ),
    leases: rows.flatMap(({ lease, desired, idleSeconds }) => {
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
        isOwnerSeen: lease.ownerSeenAt > lease.grantedAt,
        claimChanceAt: lease.claimChanceAt?.getTime() ?? null,
        disconnectedAt: lease.disconnectedAt?.getTime() ?? null,
        expiresAt: lease.expiresAt.getTime(),
        releaseAt: lease.releaseAt?.getTime() ?? null,
        withServer: leavesWithServer(lease),
        lastWorkAt: lastWorkOf([lease]).getTime(),
        idleMs: (idleSeconds ?? DEFAULT_IDLE_SECONDS) * 1000,
        workspaceRuns: desired === "running",
      };
    }),
    owners: owners.map((row) => ({
      workspaceId: row.workspaceId,
      reportedAt: row.reportedAt.getTime(),
      alive: row.alive,
    })),
  };
}
