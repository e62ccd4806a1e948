import { and, eq, gt, ne, or } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { gpuServers, leases } from "#server/db/schema/index.ts";
import { hadTimeToSave } from "#server/services/lease/holder.ts";
import { closedAt } from "./closed-at.ts";

/**
 * Whether the GPU servers of a node may end now: none takes new leases, none is held, and nobody has memory parked there
 * who was not told in time that it goes (`vacate`).
 */
export async function isFree(ctx: Context, { nodeName }: { nodeName: string }): Promise<boolean> {
  authorize(ctx.principal, "gpu-server.follow-node");
  const there = eq(gpuServers.nodeName, nodeName);
  const [open] = await ctx.db
    .select({ id: gpuServers.id })
    .from(gpuServers)
    .where(and(there, eq(gpuServers.state, "online")))
    .limit(1);
  if (open !== undefined) return false;
  const { state, noticeFor, noticeAt, releaseAt } = leases;
  const held = await ctx.db
    .select({ state, noticeFor, noticeAt, releaseAt, since: closedAt })
    .from(leases)
    .innerJoin(gpuServers, eq(gpuServers.id, leases.serverId))
    .where(and(there, or(ne(leases.state, "ended"), gt(leases.parkedBytes, 0))));
  return held.every(({ since, ...lease }) => lease.state === "ended" && hadTimeToSave(lease, since, ctx.now()));
}
