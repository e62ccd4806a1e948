import { asc, count, ne, sql } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { GpuServerList } from "#server/contracts/gpu-server.ts";
import { gpuServers, gpus, leases } from "#server/db/schema/index.ts";

/** The GPU servers of the pool; removed ones are history and left out. */
export async function list(ctx: Context): Promise<GpuServerList> {
  authorize(ctx.principal, "gpu-server.list");
  return { servers: await readServers(ctx) };
}

/** The same for callers inside, who have authorised what they show. */
export async function readServers(ctx: Context): Promise<GpuServerList["servers"]> {
  const [servers, devices, held] = await Promise.all([
    ctx.db
      .select()
      .from(gpuServers)
      .where(ne(gpuServers.state, "removed"))
      .orderBy(asc(gpuServers.createdAt), sql`length(${gpuServers.name})`, asc(gpuServers.name)),
    ctx.db.select({ serverId: gpus.serverId, n: count() }).from(gpus).groupBy(gpus.serverId),
    ctx.db
      .select({ serverId: leases.serverId, n: count() })
      .from(leases)
      .where(ne(leases.state, "ended"))
      .groupBy(leases.serverId),
  ]);
  const counts = (rows: { serverId: string; n: number }[]) => new Map(rows.map((row) => [row.serverId, row.n]));
  const [devicesOf, heldOf] = [counts(devices), counts(held)];
  return servers.map((server) => ({
    id: server.id,
    name: server.name,
    state: server.state,
    dataAddress: server.dataAddress,
    version: server.version,
    zone: server.zone,
    zoneVersion: server.zoneVersion,
    rttUs: server.rttUs,
    lastSeenAt: server.lastSeenAt?.toISOString() ?? null,
    createdAt: server.createdAt.toISOString(),
    deviceCount: devicesOf.get(server.id) ?? 0,
    leaseCount: heldOf.get(server.id) ?? 0,
  }));
}
