import { and, eq, ne } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type AskQuotaInput, askQuotaInput, type QuotaRequestView } from "#server/contracts/sharing.ts";
import { memberships, quotaRequests, teams } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { newId } from "#server/ids.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { quotaAsked } from "#server/services/notice/words.ts";
import { writeNotices } from "#server/services/notice/write.ts";
import { viewOf } from "./view.ts";

/** A member asks for more, for a time, from now or from a later one; a lead or an admin decides. */
export async function ask(ctx: Context, raw: AskQuotaInput): Promise<QuotaRequestView> {
  const input = parse(askQuotaInput, raw);
  authorize(ctx.principal, "quota-request.ask", { teamId: input.teamId });
  if (ctx.principal.kind !== "user") throw new SluiceError("forbidden", "Only a person asks for a quota.");
  const who = ctx.principal;
  const { startsAt, endsAt, ...rest } = input;
  const now = ctx.now();
  const from = startsAt === undefined ? now : new Date(Math.max(now.getTime(), Date.parse(startsAt)));
  const row = {
    ...{ id: newId("qrq"), ...rest, userId: who.userId, state: "asked" as const },
    ...{ startsAt: from, endsAt: new Date(endsAt) },
    ...{ decidedBy: null, decidedAt: null, createdAt: now },
  };
  if (row.endsAt <= row.startsAt) {
    throw new SluiceError("invalid", "endsAt: A request ends after it begins, and in the future.");
  }
  return await inTransaction(ctx, async (tx) => {
    await tx.db.insert(quotaRequests).values(row);
    const { gpuType, guaranteedMilli, limitMilli } = row;
    const detail = { gpuType, guaranteedMilli, limitMilli, startsAt: from.toISOString(), endsAt };
    await audit(tx, { action: "quota-request.ask", subject: row.id, teamId: row.teamId, detail });
    const leads = await tx.db
      .select({ userId: memberships.userId, teamName: teams.name })
      .from(memberships)
      .innerJoin(teams, eq(teams.id, memberships.teamId))
      .where(and(eq(memberships.teamId, row.teamId), eq(memberships.role, "lead"), ne(memberships.userId, who.userId)));
    const told = leads.map(({ userId, teamName }) => quotaAsked(userId, who.name, { ...row, teamName }));
    await writeNotices(tx, told);
    await notify(tx.db, "pool", row.teamId);
    return viewOf(row);
  });
}
