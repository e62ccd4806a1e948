/** Loads what the scheduler decides on: one GPU type's devices, leases, quotas and queue. */
import { and, eq, ne, or, sql } from "drizzle-orm";
import type { Database, Transaction } from "#server/db/client.ts";
import { gpuServers, gpus, leaseRequests, leases, quotas, teams, users } from "#server/db/schema/index.ts";
import type { Device, Waiting, World } from "#server/scheduler/types.ts";

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
  const [devices, holdings, quotaRows, queue] = await Promise.all([
    loadDevices(db, gpuType),
    db
      .select({ lease: leases, who: users.name })
      .from(leases)
      .innerJoin(users, eq(users.id, leases.userId))
      .where(and(eq(leases.gpuType, gpuType), ne(leases.state, "ended"))),
    db
      .select({
        teamId: quotas.teamId,
        teamName: teams.name,
        guaranteedMilli: quotas.guaranteedMilli,
        limitMilli: quotas.limitMilli,
      })
      .from(quotas)
      .innerJoin(teams, eq(teams.id, quotas.teamId))
      .where(eq(quotas.gpuType, gpuType)),
    db
      .select({ request: leaseRequests, who: users.name })
      .from(leaseRequests)
      .innerJoin(users, eq(users.id, leaseRequests.userId))
      .where(and(eq(leaseRequests.gpuType, gpuType), eq(leaseRequests.state, "queued"))),
  ]);
  return {
    gpuType,
    now: now.getTime(),
    devices,
    holdings: holdings.map(({ lease, who }) => ({
      leaseId: lease.id,
      teamId: lease.teamId,
      userId: lease.userId,
      gpuId: lease.gpuId,
      milli: lease.milli,
      memoryBytes: lease.memoryBytes,
      borrowed: lease.borrowed === 1,
      expiresAt: lease.expiresAt.getTime(),
      who,
      ...(lease.owner.label === undefined ? {} : { label: lease.owner.label }),
      lastWorkAt: (lease.usageAt ?? lease.grantedAt).getTime(),
    })),
    quotas: new Map(quotaRows.map((quota) => [quota.teamId, quota])),
    queue: queue.map(({ request, who }) => waitingOf(request, who)),
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
  };
}

/** Devices of a type, and devices that once were of it and are still pinned by a waiting request. */
async function loadDevices(db: Database | Transaction, gpuType: string): Promise<Device[]> {
  const pinned = db
    .select({ id: leaseRequests.pinnedGpuId })
    .from(leaseRequests)
    .where(and(eq(leaseRequests.gpuType, gpuType), eq(leaseRequests.state, "queued")));
  const rows = await db
    .select({ gpu: gpus, server: { name: gpuServers.name, state: gpuServers.state } })
    .from(gpus)
    .innerJoin(gpuServers, eq(gpuServers.id, gpus.serverId))
    .where(and(eq(gpus.gpuType, gpuType), or(ne(gpuServers.state, "removed"), sql`${gpus.id} in (${pinned})`)));
  return rows.map(({ gpu, server }) => ({
    id: gpu.id,
    name: gpu.name,
    serverId: gpu.serverId,
    serverName: server.name,
    memoryBytes: gpu.memoryBytes,
    state: deviceState(gpu.state, server.state),
  }));
}

function deviceState(
  gpu: (typeof gpus.$inferSelect)["state"],
  server: (typeof gpuServers.$inferSelect)["state"],
): Device["state"] {
  if (server === "removed") return "gone";
  if (server === "lost" || server === "joining" || gpu === "lost") return "away";
  return gpu === "draining" || server === "draining" ? "draining" : "open";
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
