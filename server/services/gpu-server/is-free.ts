import { and, eq, gt, ne, or } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { gpuServers, leases } from "#server/db/schema/index.ts";

/** Whether nothing would be lost if the GPU servers of a node ended now: they have no lease, and nobody's parked memory. */
export async function isFree(ctx: Context, { nodeName }: { nodeName: string }): Promise<boolean> {
  authorize(ctx.principal, "gpu-server.follow-node");
  const [held] = await ctx.db
    .select({ id: leases.id })
    .from(leases)
    .innerJoin(gpuServers, eq(gpuServers.id, leases.serverId))
    .where(and(eq(gpuServers.nodeName, nodeName), or(ne(leases.state, "ended"), gt(leases.parkedBytes, 0))))
    .limit(1);
  return held === undefined;
}
