import { eq } from "drizzle-orm";
import { z } from "zod";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import type { LeaseRequestAnswer } from "#server/contracts/lease.ts";
import { leaseRequests, leases } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";
import { answerFor, ownRequest } from "./answer.ts";
import { beginEnd } from "./ending.ts";
import { expireRequest } from "./expire-request.ts";
import { workspacePrincipal } from "./request.ts";

const cancelInput = z.strictObject({ requestId: z.string().max(64) });
export type CancelInput = z.infer<typeof cancelInput>;

/** Leaves the queue. A grant that has just been made and that nothing has connected to is given back. */
export async function cancel(ctx: Context, raw: CancelInput): Promise<LeaseRequestAnswer> {
  const input = parse(cancelInput, raw);
  const { workspaceId, teamId } = workspacePrincipal(ctx);
  authorize(ctx.principal, "lease.cancel", { workspaceId });
  const row = await ownRequest(ctx.db, workspaceId, input.requestId);
  if (await expireRequest(ctx, row.id, "cancelled")) {
    await audit(ctx, { action: "lease.cancel", subject: row.id, teamId });
  }
  return await inTransaction(ctx, async (tx) => {
    const [lease] = await tx.db
      .select()
      .from(leases)
      .where(eq(leases.requestId, row.id))
      .orderBy(leases.ordinal)
      .limit(1);
    if (lease?.state === "granted") {
      await beginEnd(tx, [lease.id], { reason: "given back", mode: "kill", note: "left the queue" });
      await tx.db.update(leaseRequests).set({ state: "cancelled" }).where(eq(leaseRequests.id, row.id));
    }
    return await answerFor(tx.db, await ownRequest(tx.db, workspaceId, row.id), tx.now());
  });
}
