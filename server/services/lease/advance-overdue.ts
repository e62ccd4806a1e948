import { and, eq, gt, isNotNull, lt, ne } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { leaseRequests, leases, reservations } from "#server/db/schema/index.ts";
import { evaluate, isSettled } from "#server/scheduler/queue.ts";
import { advanceQueue } from "./advance.ts";
import { withTypeLock } from "./with-type-lock.ts";
import { loadWorld } from "./world.ts";

/** The longest that a policy may state. */
const LONGEST_NOTICE_MS = 86_400_000;

/**
 * Grants or refuses what a change outside of leases has decided (a quota was edited, a team lost it, a reservation is
 * about to begin). Looks without a lock, and takes it only when something is to be done.
 */
export async function advanceOverdue(ctx: Context): Promise<void> {
  authorize(ctx.principal, "gpu-server.control");
  const now = ctx.now();
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
    )
    // Room for a reservation is made before it begins, whether anybody waits or not.
    .union(
      ctx.db
        .selectDistinct({ gpuType: reservations.gpuType })
        .from(reservations)
        .where(
          and(gt(reservations.endsAt, now), lt(reservations.startsAt, new Date(now.getTime() + LONGEST_NOTICE_MS))),
        ),
    );
  for (const { gpuType } of types) {
    const world = await loadWorld(ctx.db, gpuType, now);
    if (isSettled(evaluate(world))) continue;
    await withTypeLock(ctx, gpuType, async (tx) => await advanceQueue(tx, gpuType));
  }
}
