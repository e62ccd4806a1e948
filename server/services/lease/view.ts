/** Leases as their holders see them. */
import { eq } from "drizzle-orm";
import type { LeaseView } from "#server/contracts/lease.ts";
import type { Database, Transaction } from "#server/db/client.ts";
import { gpuServers, gpus, leases } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { finishAt } from "#server/scheduler/notice.ts";

export type LeaseRow = typeof leases.$inferSelect;
type GpuRow = typeof gpus.$inferSelect;
type GpuServerRow = typeof gpuServers.$inferSelect;
export type PlacedLease = { lease: LeaseRow; gpu: GpuRow; server: GpuServerRow };
/** As much of it as its holder sees. */
export type LeaseOnDevice = {
  lease: LeaseRow;
  gpu: Pick<GpuRow, "id" | "name">;
  server: Pick<GpuServerRow, "id" | "name">;
};

/** A lease with its device and server; nothing when there is none of this id. */
export async function findPlacedLease(db: Database | Transaction, leaseId: string): Promise<PlacedLease | undefined> {
  const [found] = await placedLeases(db).where(eq(leases.id, leaseId)).limit(1);
  return found;
}

/** The query that all views of leases start from. */
export function placedLeases(db: Database | Transaction) {
  return db
    .select({ lease: leases, gpu: gpus, server: gpuServers })
    .from(leases)
    .innerJoin(gpus, eq(gpus.id, leases.gpuId))
    .innerJoin(gpuServers, eq(gpuServers.id, leases.serverId))
    .$dynamic();
}

/** A lease as its holder sees it; `parts` are all devices of a lease of several GPUs, in order. */
export function leaseViewOf({ lease, gpu, server }: LeaseOnDevice, parts: readonly LeaseOnDevice[] = []): LeaseView {
  return {
    id: lease.id,
    gpuType: lease.gpuType,
    milli: lease.milli,
    memoryBytes: lease.memoryBytes,
    deviceName: gpu.name,
    gpuId: gpu.id,
    serverId: server.id,
    serverName: server.name,
    borrowed: lease.borrowed === 1,
    guaranteed: lease.guaranteedOnly === 1,
    grantedAt: lease.grantedAt.toISOString(),
    expiresAt: lease.expiresAt.toISOString(),
    notice: noticeViewOf(lease),
    ...(parts.length > 1 ? { devices: parts.map(deviceOf) } : {}),
  };
}

function noticeViewOf({ noticeFor, noticeAt, releaseAt }: LeaseRow): LeaseView["notice"] {
  if (noticeAt === null || releaseAt === null) return null;
  const notice = { at: noticeAt.getTime(), releaseAt: releaseAt.getTime() };
  return {
    at: noticeAt.toISOString(),
    finishAt: new Date(finishAt(notice)).toISOString(),
    releaseAt: releaseAt.toISOString(),
    why: noticeFor === null ? "update" : "team",
  };
}

function deviceOf({ lease, gpu, server }: LeaseOnDevice): NonNullable<LeaseView["devices"]>[number] {
  return {
    leaseId: lease.id,
    gpuId: gpu.id,
    deviceName: gpu.name,
    serverId: server.id,
    serverName: server.name,
    milli: lease.milli,
    memoryBytes: lease.memoryBytes,
  };
}

/** The lease of this workspace with this id; another workspace's lease does not exist for it. */
export async function ownLease(db: Database | Transaction, workspaceId: string, leaseId: string): Promise<PlacedLease> {
  const found = await findPlacedLease(db, leaseId);
  if (found === undefined || found.lease.workspaceId !== workspaceId) throw noSuchLease();
  return found;
}

export function noSuchLease(): SluiceError {
  return new SluiceError("not-found", "There is no such lease in this workspace. Run %gpu to see what you have.");
}
