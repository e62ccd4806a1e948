import { and, eq, inArray, isNull } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { leases, workspaceOwners } from "#server/db/schema/index.ts";
import { sameOwner } from "./owners.ts";

/**
 * The last client process of a lease is gone. A process that said goodbye leaves the lease to its notebook as long as
 * that is reported alive; otherwise the time runs in which somebody must come back.
 */
export async function disconnect(
  ctx: Context,
  input: { serverId: string; leaseId: string; clean: boolean },
): Promise<void> {
  authorize(ctx.principal, "gpu-server.control", { serverId: input.serverId });
  const [row] = await ctx.db
    .select({ owner: leases.owner, alive: workspaceOwners.alive })
    .from(leases)
    .leftJoin(workspaceOwners, eq(workspaceOwners.workspaceId, leases.workspaceId))
    .where(eq(leases.id, input.leaseId));
  if (row === undefined) return;
  const listed = row.alive?.some((owner) => sameOwner(owner, row.owner)) ?? false;
  if (input.clean && listed) return;
  await ctx.db
    .update(leases)
    .set({ disconnectedAt: ctx.now() })
    .where(
      and(
        eq(leases.id, input.leaseId),
        eq(leases.serverId, input.serverId),
        inArray(leases.state, ["active", "unreachable"]),
        isNull(leases.disconnectedAt),
      ),
    );
}
