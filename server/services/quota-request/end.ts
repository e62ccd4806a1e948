import { and, eq, gt } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type EndQuotaRequestInput, endQuotaRequestInput, type QuotaRequestView } from "#server/contracts/sharing.ts";
import { quotaRequests } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { lockGpuType } from "#server/services/lease/world.ts";
import { viewOf } from "./view.ts";

/** Ends an approved increase before its time. What is held goes on, and counts against the quota that is left. */
export async function end(ctx: Context, raw: EndQuotaRequestInput): Promise<QuotaRequestView> {
  const { id } = parse(endQuotaRequestInput, raw);
  const [known] = await ctx.db.select().from(quotaRequests).where(eq(quotaRequests.id, id));
  authorize(ctx.principal, "quota-request.decide", { teamId: known?.teamId });
  if (known === undefined) throw new SluiceError("not-found", "There is no such request. Reload the page.");
  return await inTransaction(ctx, async (tx) => {
    await lockGpuType(tx.db, known.gpuType);
    const now = tx.now();
    const [ended] = await tx.db
      .update(quotaRequests)
      .set({ endsAt: now })
      .where(and(eq(quotaRequests.id, id), eq(quotaRequests.state, "approved"), gt(quotaRequests.endsAt, now)))
      .returning();
    if (ended === undefined) {
      throw new SluiceError("conflict", "This increase is not approved, or it has ended already. Reload the page.");
    }
    const { gpuType, limitMilli, guaranteedMilli } = ended;
    const change = { before: { endsAt: known.endsAt.toISOString() }, after: { endsAt: now.toISOString() } };
    const detail = { gpuType, limitMilli, guaranteedMilli, ...change };
    await audit(tx, { action: "quota-request.end", subject: id, teamId: ended.teamId, detail });
    await notify(tx.db, "pool", ended.teamId);
    return viewOf(ended);
  });
}
