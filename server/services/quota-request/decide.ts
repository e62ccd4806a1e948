import { and, eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type DecideQuotaInput, decideQuotaInput, type QuotaRequestView } from "#server/contracts/sharing.ts";
import { quotaRequests, teams } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { lockGpuType } from "#server/services/lease/world.ts";
import { quotaDecided } from "#server/services/notice/words.ts";
import { writeNotices } from "#server/services/notice/write.ts";
import { refuseUnpackable } from "#server/services/team/refuse-unpackable.ts";
import { viewOf } from "./view.ts";

/**
 * Approves or refuses a request for more. Approved it is on top of the quota from its beginning until it ends alone;
 * more of a guarantee is an admin's to promise, and is refused when it does not fit the devices at any time of it.
 */
export async function decide(ctx: Context, raw: DecideQuotaInput): Promise<QuotaRequestView> {
  const { id, approve } = parse(decideQuotaInput, raw);
  const [asked] = await ctx.db.select().from(quotaRequests).where(eq(quotaRequests.id, id));
  authorize(ctx.principal, "quota-request.decide", { teamId: asked?.teamId });
  if (asked === undefined) throw new SluiceError("not-found", "There is no such request. Reload the page.");
  const isAdmin = ctx.principal.kind !== "user" || ctx.principal.isAdmin;
  if (approve && asked.guaranteedMilli > 0 && !isAdmin) {
    throw new SluiceError("forbidden", "Only an admin promises more of the pool. Ask for a higher limit alone.");
  }
  if (approve && asked.endsAt <= ctx.now()) {
    throw new SluiceError("conflict", "The time that was asked for is over. Ask again for a later one.");
  }
  return await inTransaction(ctx, async (tx) => {
    await lockGpuType(tx.db, asked.gpuType);
    const decidedBy = tx.principal.kind === "user" ? tx.principal.userId : null;
    const [decided] = await tx.db
      .update(quotaRequests)
      .set({ state: approve ? "approved" : "refused", decidedBy, decidedAt: tx.now() })
      .where(and(eq(quotaRequests.id, id), eq(quotaRequests.state, "asked")))
      .returning();
    if (decided === undefined) throw new SluiceError("conflict", "This request is decided already. Reload the page.");
    if (approve && decided.guaranteedMilli > 0) await refuseUnpackable(tx, decided.gpuType);
    const action = approve ? "quota-request.approve" : "quota-request.refuse";
    await audit(tx, { action, subject: id, teamId: decided.teamId });
    if (decided.userId !== decidedBy) {
      const [team] = await tx.db.select({ name: teams.name }).from(teams).where(eq(teams.id, decided.teamId));
      await writeNotices(tx, [quotaDecided(decided.userId, approve, { ...decided, teamName: team?.name ?? "" })]);
    }
    await notify(tx.db, "pool", decided.teamId);
    return viewOf(decided);
  });
}
