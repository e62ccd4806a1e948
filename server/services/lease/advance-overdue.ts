import { eq } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { leaseRequests } from "#server/db/schema/index.ts";
import { evaluateQueue } from "#server/scheduler/queue.ts";
import { advanceQueue } from "./advance.ts";
import { withTypeLock } from "./with-type-lock.ts";
import { loadWorld } from "./world.ts";

/**
 * Grants or refuses what a change outside of leases has decided (a quota was edited, a team lost it). Looks without a
 * lock, and takes it only when something is to be done.
 */
export async function advanceOverdue(ctx: Context): Promise<void> {
  authorize(ctx.principal, "gpu-server.control");
  const types = await ctx.db
    .selectDistinct({ gpuType: leaseRequests.gpuType })
    .from(leaseRequests)
    .where(eq(leaseRequests.state, "queued"));
  for (const { gpuType } of types) {
    const world = await loadWorld(ctx.db, gpuType, ctx.now());
    if (evaluateQueue(world).every((verdict) => verdict.state === "queued")) continue;
    await withTypeLock(ctx, gpuType, async (tx) => await advanceQueue(tx, gpuType));
  }
}
