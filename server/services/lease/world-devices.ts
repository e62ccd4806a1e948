/** The devices of one GPU type as the scheduler sees them. */
import { and, eq, ne, or, sql } from "drizzle-orm";
import type { Database, Transaction } from "#server/db/client.ts";
import { gpuServers, gpus, leaseRequests } from "#server/db/schema/index.ts";
import type { Device } from "#server/scheduler/types.ts";

/** Devices of a type, and devices that once were of it and are still pinned by a waiting request. */
export async function loadDevices(db: Database | Transaction, gpuType: string): Promise<Device[]> {
  const pinned = db
    .select({ id: leaseRequests.pinnedGpuId })
    .from(leaseRequests)
    .where(and(eq(leaseRequests.gpuType, gpuType), eq(leaseRequests.state, "queued")));
  const { name, state, zone, rttUs } = gpuServers;
  const { id, serverId, memoryBytes, linkGroup } = gpus;
  const rows = await db
    .select({
      gpu: { id, name: gpus.name, serverId, memoryBytes, linkGroup, state: gpus.state },
      server: { name, state, zone, rttUs },
      cudaVersion: sql<number | null>`(${gpus.profile}->>'driverVersion')::int`,
    })
    .from(gpus)
    .innerJoin(gpuServers, eq(gpuServers.id, gpus.serverId))
    .where(and(eq(gpus.gpuType, gpuType), or(ne(gpuServers.state, "removed"), sql`${gpus.id} in (${pinned})`)));
  return rows.map(({ gpu, server, cudaVersion }) => ({
    id: gpu.id,
    name: gpu.name,
    serverId: gpu.serverId,
    serverName: server.name,
    memoryBytes: gpu.memoryBytes,
    state: deviceState(gpu.state, server.state),
    ...(gpu.linkGroup === null ? {} : { linkGroup: gpu.linkGroup }),
    ...(server.zone === null ? {} : { zone: server.zone }),
    ...(server.rttUs === null ? {} : { rttUs: server.rttUs }),
    ...(cudaVersion === null ? {} : { cudaVersion }),
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
