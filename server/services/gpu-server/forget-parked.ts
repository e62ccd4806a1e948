import { and, eq, gt, inArray } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { gpuServers, leases } from "#server/db/schema/index.ts";

/** The GPU servers of this node have ended, and with them what was parked there; its owners are no longer sent there. */
export async function forgetParked(ctx: Context, { nodeName }: { nodeName: string }): Promise<void> {
  authorize(ctx.principal, "gpu-server.follow-node");
  const there = ctx.db.select({ id: gpuServers.id }).from(gpuServers).where(eq(gpuServers.nodeName, nodeName));
  await ctx.db
    .update(leases)
    .set({ parkedBytes: 0 })
    .where(and(inArray(leases.serverId, there), eq(leases.state, "ended"), gt(leases.parkedBytes, 0)));
}
