import { and, eq, gt, inArray } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { gpuServers, leases, workspaceOwners, workspaces } from "#server/db/schema/index.ts";
import { closedAt } from "#server/services/gpu-server/closed-at.ts";
import { hadTimeToSave } from "./holder.ts";
import { isAbandoned } from "./owners.ts";

/**
 * Leases that ended on this server with memory parked for an owner that is gone (its workspace was stopped, or no
 * longer lists it), or that has been told that the server goes out of service and has had the time to save it. Their
 * memory counts as dropped from here on; the caller tells gpud. Returns their ids.
 */
export async function dropParked(ctx: Context, input: { serverId: string }): Promise<string[]> {
  authorize(ctx.principal, "gpu-server.control", { serverId: input.serverId });
  const parked = await ctx.db
    .select({ lease: leases, desired: workspaces.desired, owners: workspaceOwners, since: closedAt })
    .from(leases)
    .innerJoin(gpuServers, eq(gpuServers.id, leases.serverId))
    .leftJoin(workspaces, eq(workspaces.id, leases.workspaceId))
    .leftJoin(workspaceOwners, eq(workspaceOwners.workspaceId, leases.workspaceId))
    .where(and(eq(leases.serverId, input.serverId), eq(leases.state, "ended"), gt(leases.parkedBytes, 0)));
  const ids = parked
    .filter(
      ({ lease, desired, owners, since }) =>
        hadTimeToSave(lease, since, ctx.now()) || isAbandoned(lease, desired === "running", owners),
    )
    .map(({ lease }) => lease.id);
  if (ids.length > 0) await ctx.db.update(leases).set({ parkedBytes: 0 }).where(inArray(leases.id, ids));
  return ids;
}
