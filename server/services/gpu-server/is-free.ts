import { and, eq, gt, isNull, lte, ne, or, sql } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { gpuServers, leases } from "#server/db/schema/index.ts";
import { closedAt } from "./closed-at.ts";

/**
 * Whether the GPU servers of a node may end now: none takes new leases, none is held, and nobody has memory parked there
 * who was not told in time that it goes (`vacate`).
 */
export async function isFree(ctx: Context, { nodeName }: { nodeName: string }): Promise<boolean> {
  authorize(ctx.principal, "gpu-server.follow-node");
  const there = eq(gpuServers.nodeName, nodeName);
  const wasTold = and(
    isNull(leases.noticeFor),
    sql`${leases.noticeAt} >= ${closedAt}`,
    lte(leases.releaseAt, ctx.now()),
  );
  const parked = and(gt(leases.parkedBytes, 0), sql`(${wasTold}) is not true`);
  const [open] = await ctx.db
    .select({ id: gpuServers.id })
    .from(gpuServers)
    .where(and(there, eq(gpuServers.state, "online")))
    .limit(1);
  const [held] = await ctx.db
    .select({ id: leases.id })
    .from(leases)
    .innerJoin(gpuServers, eq(gpuServers.id, leases.serverId))
    .where(and(there, or(ne(leases.state, "ended"), parked)))
    .limit(1);
  return open === undefined && held === undefined;
}
