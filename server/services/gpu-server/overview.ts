import type { Context } from "#server/context.ts";
import type { PoolOverview } from "#server/contracts/gpu-server.ts";
import { readDevices } from "./devices.ts";
import { readPool } from "./map.ts";
import { poolSight } from "./pool-sight.ts";
import { wholeQueue } from "./queue.ts";

/** All of the pool at once, for scripts: figures by type, every device with who holds it, and the queue. */
export async function overview(ctx: Context): Promise<PoolOverview> {
  const sees = poolSight(ctx);
  const [{ totals, servers }, devices, queue] = await Promise.all([
    readPool(ctx, sees),
    readDevices(ctx, sees),
    wholeQueue(ctx),
  ]);
  return { totals, servers: servers.map(({ devices: _, teams: __, ...server }) => server), devices, queue };
}
