import { asc, count, ne } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { GpuServerList } from "#server/contracts/gpu-server.ts";
import { gpuServers, gpus, leases } from "#server/db/schema/index.ts";

/** The GPU servers of the pool; removed ones are history and left out. */
export async function list(ctx: Context): Promise<GpuServerList> {
  authorize(ctx.principal, "gpu-server.list");
  const [servers, devices, held] = await Promise.all([
    ctx.db.select().from(gpuServers).where(ne(gpuServers.state, "removed")).orderBy(asc(gpuServers.createdAt)),
    ctx.db.select({ serverId: gpus.serverId, n: count() }).from(gpus).groupBy(gpus.serverId),
    ctx.db
      .select({ serverId: leases.serverId, n: count() })
      .from(leases)
      .where(ne(leases.state, "ended"))
      .groupBy(leases.serverId),
  ]);
  const of = (rows: { serverId: string; n: number }[], id: string) => rows.find((row) => row.serverId === id)?.n ?? 0;
  return {
    servers: servers.map((server) => ({
      id: server.id,
      name: server.name,
      state: server.state,
      dataAddress: server.dataAddress,
      version: server.version,
      zone: server.zone,
      rttUs: server.rttUs,
      lastSeenAt: server.lastSeenAt?.toISOString() ?? null,
      createdAt: server.createdAt.toISOString(),
      deviceCount: of(devices, server.id),
      leaseCount: of(held, server.id),
    })),
  };
}
