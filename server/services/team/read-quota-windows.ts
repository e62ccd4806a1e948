import { and, asc, eq } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { type QuotaWindows, type ReadQuotaWindowsInput, readQuotaWindowsInput } from "#server/contracts/sharing.ts";
import { quotaWindows } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";
import { calendarVersion } from "#server/services/calendar/version.ts";

/** The calendar of a quota: where in the week it differs, in the order of the week. */
export async function readQuotaWindows(ctx: Context, raw: ReadQuotaWindowsInput): Promise<QuotaWindows> {
  const { teamId, gpuType } = parse(readQuotaWindowsInput, raw);
  authorize(ctx.principal, "team.read", { teamId });
  const { fromMinute, toMinute, guaranteedMilli, limitMilli } = quotaWindows;
  const windows = await ctx.db
    .select({ fromMinute, toMinute, guaranteedMilli, limitMilli })
    .from(quotaWindows)
    .where(and(eq(quotaWindows.teamId, teamId), eq(quotaWindows.gpuType, gpuType)))
    .orderBy(asc(fromMinute), asc(quotaWindows.id));
  return { windows, version: await calendarVersion(ctx.db, { gpuType, teamId }) };
}
