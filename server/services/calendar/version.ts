/** Calendars are edited by one at a time: a quota's (with a team) and a GPU type's own (without one). */
import { and, eq, isNull, sql } from "drizzle-orm";
import type { Database, Transaction } from "#server/db/client.ts";
import { calendarVersions } from "#server/db/schema/index.ts";
import { refuseStale } from "#server/services/refuse-stale.ts";

export type CalendarOf = { gpuType: string; teamId?: string | undefined };

/** How often it was saved; 0: never. */
export async function calendarVersion(db: Database | Transaction, { gpuType, teamId }: CalendarOf): Promise<number> {
  const [row] = await db
    .select({ version: calendarVersions.version })
    .from(calendarVersions)
    .where(
      and(
        eq(calendarVersions.gpuType, gpuType),
        teamId === undefined ? isNull(calendarVersions.teamId) : eq(calendarVersions.teamId, teamId),
      ),
    );
  return row?.version ?? 0;
}

/** Counts an edit of what was seen at `seen`; refused when somebody else was faster. Call under the type's lock. */
export async function raiseCalendarVersion(
  tx: Transaction,
  calendar: CalendarOf,
  seen: number | undefined,
): Promise<number> {
  const { gpuType, teamId = null } = calendar;
  const current = await calendarVersion(tx, calendar);
  refuseStale(seen, { version: current }, `the calendar of ${gpuType}`);
  await tx
    .insert(calendarVersions)
    .values({ gpuType, teamId })
    .onConflictDoUpdate({
      target: [calendarVersions.gpuType, calendarVersions.teamId],
      set: { version: sql`${calendarVersions.version} + 1` },
    });
  return current + 1;
}
