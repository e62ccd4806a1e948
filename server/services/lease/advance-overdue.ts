import { and, eq, isNotNull, ne } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { leaseRequests, leases } from "#server/db/schema/index.ts";
import { evaluate, isSettled } from "#server/scheduler/queue.ts";
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
    .where(eq(leaseRequests.state, "queued"))
    // Notices stay until somebody withdraws them, also when nobody waits any more.
    .union(
      ctx.db
        .selectDistinct({ gpuType: leases.gpuType })
        .from(leases)
        .where(and(isNotNull(leases.noticeFor), ne(leases.state, "ended"))),
    );
  for (const { gpuType } of types) {
    const world = await loadWorld(ctx.db, gpuType, ctx.now());
    if (isSettled(evaluate(world))) continue;
    await withTypeLock(ctx, gpuType, async (tx) => await advanceQueue(tx, gpuType));
  }
}
