import { and, eq, inArray } from "drizzle-orm";
import { z } from "zod";
import { type Context, inTransaction } from "#server/context.ts";
import { leaseRequests, leases } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { advanceQueue } from "./advance.ts";
import { beginEnd } from "./ending.ts";

import { lockGpuTypes } from "./world.ts";

const endForWorkspaceInput = z.strictObject({ workspaceId: z.string() });
export type EndForWorkspaceInput = z.infer<typeof endForWorkspaceInput>;

/**
 * Ends all that a workspace holds or waits for, because it is stopped or removed. Part of that operation: the caller
 * has authorised it, and may call inside its transaction. Returns how many leases it ends.
 */
export async function endForWorkspace(ctx: Context, raw: EndForWorkspaceInput): Promise<number> {
  const { workspaceId } = parse(endForWorkspaceInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const live = and(eq(leases.workspaceId, workspaceId), inArray(leases.state, ["granted", "active", "unreachable"]));
    const waiting = and(eq(leaseRequests.workspaceId, workspaceId), eq(leaseRequests.state, "queued"));
    const types = await Promise.all([
      tx.db.selectDistinct({ gpuType: leases.gpuType }).from(leases).where(live),
      tx.db.selectDistinct({ gpuType: leaseRequests.gpuType }).from(leaseRequests).where(waiting),
    ]);
    const locked = await lockGpuTypes(
      tx.db,
      types.flat().map((row) => row.gpuType),
    );
    const left = await tx.db
      .update(leaseRequests)
      .set({ state: "cancelled", decidedAt: tx.now() })
      .where(waiting)
      .returning({ id: leaseRequests.id });
    for (const request of left) await notify(tx.db, "lease", request.id);
    const held = await tx.db.select({ id: leases.id }).from(leases).where(live);
    const ending = await beginEnd(
      tx,
      held.map((lease) => lease.id),
      { reason: "workspace stopped", mode: "kill" },
    );
    if (left.length > 0) for (const gpuType of locked) await advanceQueue(tx, gpuType);
    return ending.length;
  });
}
