import type { Context } from "#server/context.ts";
import type { UtilisationRow } from "#server/contracts/utilisation.ts";
import { partsOf } from "./parts.ts";
import { readHeldTimes, rowsOf } from "./rows.ts";

const DAY_MS = 86_400_000;

export const MOST_IDLE_DAYS = 7;

/** The midnight (UTC) at which the first of the days that count begins, today being the last of them. */
export const mostIdleFrom = (now: Date): number =>
  Math.floor(now.getTime() / DAY_MS) * DAY_MS - (MOST_IDLE_DAYS - 1) * DAY_MS;

/**
 * The people who held most GPU time of the last seven days (UTC, today among them) while their GPU did nothing, most idle first; waits and
 * lending are not told. Of all teams, for admins, or of some, for their leads.
 */
export async function mostIdle(ctx: Context, limit: number, teamIds?: readonly string[]): Promise<UtilisationRow[]> {
  const parts = partsOf(ctx, teamIds);
  const span = { from: new Date(mostIdleFrom(ctx.now())), to: ctx.now() };
  const times = await Promise.all(parts.map((part) => readHeldTimes(ctx, span, part, "person")));
  const rows = rowsOf(times.flat(), "person", "idle");
  return rows.filter((row) => row.heldIdle > 0).slice(0, limit);
}
