import { authorize, type Context } from "#server/context.ts";
import type { PoolOverview } from "#server/contracts/gpu-server.ts";
import { readDevices } from "./devices.ts";
import { readPool } from "./map.ts";

/** All of the pool at once, for scripts: figures by type, every device with who holds it, and the queue. */
export async function overview(ctx: Context): Promise<PoolOverview> {
  authorize(ctx.principal, "pool.read");
  const [{ totals, servers, queue }, devices] = await Promise.all([readPool(ctx), readDevices(ctx)]);
  return { totals, servers: servers.map(({ devices: _, ...server }) => server), devices, queue };
}
