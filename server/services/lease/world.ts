/** Loads what the scheduler decides on: one GPU type's devices, leases, quotas and queue. */
import { and, eq, ne, sql } from "drizzle-orm";
import type { Database, Transaction } from "#server/db/client.ts";
import { gpuServers, gpus, leaseRequests, leases, quotas, users } from "#server/db/schema/index.ts";
import type { Holding, Waiting, World } from "#server/scheduler/types.ts";
import { RECLAIM_POLICY } from "./policy.ts";
import { loadDevices } from "./world-devices.ts";
import { loadOpenKinds, loadQuotas, loadReservations, loadStops } from "./world-quotas.ts";

const TYPE_LOCK = 7_411_010;

/**
 * Serialises decisions about one GPU type until the transaction ends: what is read after it is what is decided on.
 * Take it before any row of that type is written.
 */
export async function lockGpuType(tx: Transaction, gpuType: string): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(${TYPE_LOCK}, hashtext(${gpuType}))`);
}

/** Locks several types in one order, so that two transactions never wait for each other. */
export async function lockGpuTypes(tx: Transaction, gpuTypes: Iterable<string>): Promise<string[]> {
  const sorted = [...new Set(gpuTypes)].sort();
  for (const gpuType of sorted) await lockGpuType(tx, gpuType);
  return sorted;
}

/** The world of one GPU type. Consistent under `lockGpuType`; without it, good for showing only. */
export async function loadWorld(db: Database | Transaction, gpuType: string, now: Date): Promise<World> {
  const [devices, holdings, quotaMap, queue, stops, reservations, open] = await Promise.all([
    loadDevices(db, gpuType),
    db
      .select({ lease: leases, who: users.name })
      .from(leases)
      .innerJoin(users, eq(users.id, leases.userId))
      .where(and(eq(leases.gpuType, gpuType), ne(leases.state, "ended"))),
    loadQuotas(db, gpuType, now),
    db
      .select({ request: leaseRequests, who: users.name })
      .from(leaseRequests)
      .innerJoin(users, eq(users.id, leaseRequests.userId))
      .where(and(eq(leaseRequests.gpuType, gpuType), eq(leaseRequests.state, "queued"))),
    loadStops(db),
    loadReservations(db, gpuType, now),
    loadOpenKinds(db, gpuType, now),
  ]);
  return {
    gpuType,
    now: now.getTime(),
    devices,
    holdings: holdings.map(({ lease, who }) => holdingOf(lease, who)),
    quotas: quotaMap,
    queue: queue.map(({ request, who }) => waitingOf(request, who)),
    policy: RECLAIM_POLICY,
    stops,
    reservations,
    open,
  };
}

/** A lease row as the scheduler sees it. */
export function holdingOf(lease: typeof leases.$inferSelect, who: string): Holding {
  const { noticeFor, noticeAt, releaseAt } = lease;
  return {
    leaseId: lease.id,
    groupId: lease.requestId,
    teamId: lease.teamId,
    userId: lease.userId,
    gpuId: lease.gpuId,
    milli: lease.milli,
    memoryBytes: lease.memoryBytes,
    borrowed: lease.borrowed === 1,
    guaranteedOnly: lease.guaranteedOnly === 1,
    grantedAt: lease.grantedAt.getTime(),
    expiresAt: lease.expiresAt.getTime(),
    who,
    ...(lease.owner.label === undefined ? {} : { label: lease.owner.label }),
    lastWorkAt: (lease.usageAt ?? lease.grantedAt).getTime(),
    ending: lease.state === "ending",
    ...(noticeFor === null || noticeAt === null || releaseAt === null
      ? {}
      : { notice: { requestId: noticeFor, at: noticeAt.getTime(), releaseAt: releaseAt.getTime() } }),
  };
}

/** A queue row as the scheduler sees it. */
function waitingOf(request: typeof leaseRequests.$inferSelect, who: string): Waiting {
  return {
    requestId: request.id,
    teamId: request.teamId,
    userId: request.userId,
    who,
    milli: request.milli,
    memoryBytes: request.memoryBytes,
    guaranteedOnly: request.guaranteedOnly === 1,
    ...(request.pinnedGpuId === null ? {} : { pinnedGpuId: request.pinnedGpuId }),
    createdAt: request.createdAt.getTime(),
    lengthMs: request.forSeconds * 1000,
    rank: request.rank,
    kind: request.kind,
    maxDevices: request.maxDevices,
    ...(request.needs === null ? {} : { needs: request.needs }),
    ...(request.keptGpuIds === null ? {} : { keptGpuIds: request.keptGpuIds }),
  };
}

/** GPU types that have a device or a quota, in alphabetical order. */
export async function knownGpuTypes(db: Database | Transaction): Promise<string[]> {
  const [devices, limits] = await Promise.all([
    db
      .selectDistinct({ gpuType: gpus.gpuType })
      .from(gpus)
      .innerJoin(gpuServers, and(eq(gpuServers.id, gpus.serverId), ne(gpuServers.state, "removed"))),
    db.selectDistinct({ gpuType: quotas.gpuType }).from(quotas),
  ]);
  return [...new Set([...devices, ...limits].map((row) => row.gpuType))].sort();
}
