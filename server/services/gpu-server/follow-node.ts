import { and, eq, inArray, isNotNull, isNull, ne, or } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { gpuServers } from "#server/db/schema/index.ts";
import { drain } from "./drain.ts";
import { stay } from "./stay.ts";

/**
 * Why the GPU servers of a node take no new leases: the node is cordoned, or deleted (the cluster ends their gpud then,
 * sooner or later), or their gpud is about to be replaced.
 */
export type Closed = "cordoned" | "deleted" | "update";

/**
 * The GPU servers on a node of the cluster follow it: none of them takes new leases while it is closed, and those that
 * were drained for that take leases again afterwards. What an admin has drained, before or meanwhile, stays so; what an admin opened on a
 * cordoned node stays open; before an update it is closed again, because the new lease would end with the old gpud. The
 * servers that changed.
 */
export async function followNode(
  ctx: Context,
  { nodeName, closed }: { nodeName: string; closed: Closed | undefined },
): Promise<string[]> {
  authorize(ctx.principal, "gpu-server.follow-node");
  // One that is only joining has no devices to drain yet: it is looked at again.
  const takesLeases = eq(gpuServers.state, "online");
  const differs = closed
    ? or(
        and(isNull(gpuServers.cordonedAt), inArray(gpuServers.state, ["online", "lost"])),
        closed === "update" ? takesLeases : undefined,
      )
    : and(isNotNull(gpuServers.cordonedAt), ne(gpuServers.state, "removed"));
  const other = and(eq(gpuServers.nodeName, nodeName), differs);
  const found = await ctx.db.select({ id: gpuServers.id }).from(gpuServers).where(other);
  const draining = closed !== undefined;
  for (const { id } of found) {
    await inTransaction(ctx, async (tx) => {
      const is = eq(gpuServers.id, id);
      const [server] = await tx.db.select().from(gpuServers).where(is).for("update");
      const byAdmin = server !== undefined && server.drainedAt !== null && !server.drainedByNode;
      if (!byAdmin) await drain(tx, { serverId: id, draining });
      await tx.db
        .update(gpuServers)
        .set({ cordonedAt: draining ? tx.now() : null, drainedByNode: draining && !byAdmin })
        .where(is);
      if (closed === undefined) await stay(tx, { serverId: id });
      await audit(tx, { action: "gpu-server.follow-node", subject: id, detail: { nodeName, closed: closed ?? null } });
    });
  }
  return found.map(({ id }) => id);
}
