import { and, eq, inArray } from "drizzle-orm";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import { type OwnersReport, ownersReport } from "#server/contracts/lease.ts";
import { leaseRequests, leases, workspaceOwners } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { advanceQueue } from "./advance.ts";
import { beginEnd } from "./ending.ts";
import { diedBetween, sameOwner } from "./owners.ts";
import { workspacePrincipal } from "./request.ts";
import { lockGpuTypes } from "./world.ts";

/**
 * Takes the list of a workspace's alive kernels. What a kernel held that has left the list is released at once, its
 * places in the queue with it. Returns how many leases that ended.
 */
export async function reportOwners(ctx: Context, raw: OwnersReport): Promise<{ released: number }> {
  const { alive } = parse(ownersReport, raw);
  const { workspaceId } = workspacePrincipal(ctx);
  authorize(ctx.principal, "lease.report-owners", { workspaceId });
  return await inTransaction(ctx, async (tx) => {
    const now = tx.now();
    const [known] = await tx.db
      .select()
      .from(workspaceOwners)
      .where(eq(workspaceOwners.workspaceId, workspaceId))
      .for("update");
    await tx.db
      .insert(workspaceOwners)
      .values({ workspaceId, reportedAt: now, alive })
      .onConflictDoUpdate({ target: workspaceOwners.workspaceId, set: { reportedAt: now, alive } });
    const dead = diedBetween(known?.alive ?? [], alive);
    const held = await tx.db
      .select()
      .from(leases)
      .where(and(eq(leases.workspaceId, workspaceId), inArray(leases.state, ["granted", "active", "unreachable"])));
    const seen = held.filter((lease) => alive.some((owner) => sameOwner(owner, lease.owner))).map((lease) => lease.id);
    if (seen.length > 0) await tx.db.update(leases).set({ ownerSeenAt: now }).where(inArray(leases.id, seen));
    if (dead.length === 0) return { released: 0 };

    const orphans = held.filter((lease) => dead.some((owner) => sameOwner(owner, lease.owner)));
    const waiting = await tx.db
      .select()
      .from(leaseRequests)
      .where(and(eq(leaseRequests.workspaceId, workspaceId), eq(leaseRequests.state, "queued")));
    const abandoned = waiting.filter((request) => dead.some((owner) => sameOwner(owner, request.owner)));
    const types = await lockGpuTypes(
      tx.db,
      [...orphans, ...abandoned].map((row) => row.gpuType),
    );
    for (const request of abandoned) {
      await tx.db
        .update(leaseRequests)
        .set({ state: "cancelled", decidedAt: now })
        .where(and(eq(leaseRequests.id, request.id), eq(leaseRequests.state, "queued")));
      await notify(tx.db, "lease", request.id);
    }
    const ending = await beginEnd(
      tx,
      orphans.map((lease) => lease.id),
      { reason: "owner gone", mode: "kill" },
    );
    if (abandoned.length > 0) for (const gpuType of types) await advanceQueue(tx, gpuType);
    return { released: ending.length };
  });
}
