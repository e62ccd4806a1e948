import { and, eq, inArray } from "drizzle-orm";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import { leases } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";

/**
 * A client process has connected to gpud: the lease is claimed, and nobody waits for it to come back. false when the
 * lease does not hold (any more), and gpud must end the worker.
 */
export async function claim(ctx: Context, input: { serverId: string; leaseId: string }): Promise<boolean> {
  authorize(ctx.principal, "gpu-server.control", { serverId: input.serverId });
  return await inTransaction(ctx, async (tx) => {
    const [lease] = await tx.db
      .select()
      .from(leases)
      .where(and(eq(leases.id, input.leaseId), eq(leases.serverId, input.serverId)))
      .for("update");
    if (lease === undefined || lease.state === "ended") return false;
    if (lease.state === "ending") return true;
    const now = tx.now();
    await tx.db
      .update(leases)
      .set({ state: "active", claimedAt: lease.claimedAt ?? now, ownerSeenAt: now, disconnectedAt: null })
      .where(and(eq(leases.id, lease.id), inArray(leases.state, ["granted", "active", "unreachable"])));
    await notify(tx.db, "lease", lease.id);
    return true;
  });
}
