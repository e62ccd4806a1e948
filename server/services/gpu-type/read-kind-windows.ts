import { asc, eq } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { type KindWindows, type ReadKindWindowsInput, readKindWindowsInput } from "#server/contracts/sharing.ts";
import { kindWindows } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";
import { calendarVersion } from "#server/services/calendar/version.ts";

/** The calendar of a GPU type: when it takes one kind of work only, in the order of the week. */
export async function readKindWindows(ctx: Context, raw: ReadKindWindowsInput): Promise<KindWindows> {
  authorize(ctx.principal, "calendar.list");
  const { gpuType } = parse(readKindWindowsInput, raw);
  const { fromMinute, toMinute, kind } = kindWindows;
  const windows = await ctx.db
    .select({ fromMinute, toMinute, kind })
    .from(kindWindows)
    .where(eq(kindWindows.gpuType, gpuType))
    .orderBy(asc(fromMinute), asc(kindWindows.id));
  return { windows, version: await calendarVersion(ctx.db, { gpuType }) };
}
