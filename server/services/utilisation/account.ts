/** The account of GPU time: from the hours and days that are rolled up, and from the ledger what they do not hold yet. */
import { type SQL, sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { usageRollup } from "#server/db/schema/index.ts";
import {
  AMOUNTS,
  ceilTo,
  type Filter,
  floorTo,
  HOUR_S,
  heldInLedger,
  is,
  isNarrow,
  poolInLedger,
  type Span,
} from "./ledger.ts";

export const DAY_S = 24 * HOUR_S;
const WEEK_S = 7 * DAY_S;

/** Two queries, for a `from`: see `heldInLedger` and `poolInLedger` for their columns. */
export type Account = { held: SQL; pool: SQL };
/**
 * What rows have to tell. Rows by team may be without `user_id` and `workspace_id`, rows by person alone without
 * `gpu_type` and `state`, and there are far fewer of both.
 */
export type Whose = "team" | "person" | "person-alone";

/**
 * What became of a span, in steps of `seconds`: a divisor of the hour, an hour or a multiple (rows are then by the hour),
 * a day or a multiple (by the day, but for the ends of the span). Steps shorter than an hour are for spans of about a day.
 */
export async function account(
  ctx: Context,
  span: Span,
  filter: Filter,
  seconds: number,
  whose: Whose,
): Promise<Account> {
  const [mark] = await ctx.db.select().from(usageRollup);
  const now = ctx.now();
  const live = (part: Span): Account => ({
    held: heldInLedger(part, filter, Math.min(seconds, HOUR_S), now),
    pool: poolInLedger(part, filter, Math.min(seconds, HOUR_S), now),
  });
  const hours = seconds < HOUR_S ? undefined : within(span, HOUR_S, mark?.rolledTo ?? span.from);
  const days = seconds < DAY_S || hours === undefined ? undefined : within(hours, DAY_S, hours.to);
  const alone = whose === "person-alone" && filter.gpuType === undefined;
  const weeks = days === undefined || !alone ? undefined : within(days, WEEK_S, days.to);
  const byTeam = whose === "team" && !isNarrow(filter);
  const between = (outer: Span | undefined, inner: Span | undefined) =>
    outer === undefined ? [] : around(outer, inner);
  const parts = [
    ...around(span, hours).map(live),
    ...between(hours, days).map((part) => rolled(byTeam ? "usage_team_hours" : "usage_hours", part, filter)),
    ...between(days, weeks).map((part) => rolled(byTeam ? "usage_team_days" : "usage_days", part, filter)),
    ...(weeks === undefined ? [] : [rolled("usage_weeks", weeks, filter)]),
  ];
  const all = (pick: keyof Account) => {
    const queries = parts.map((part) => sql`(${part[pick]})`);
    return sql`(${sql.join(queries, sql` union all `)})`;
  };
  return { held: all("held"), pool: all("pool") };
}

type Rolled = "usage_hours" | "usage_team_hours" | "usage_days" | "usage_team_days" | "usage_weeks";

/** What a table does not tell apart. */
const lacks: Record<Rolled, readonly string[]> = {
  usage_hours: [],
  usage_team_hours: ["user_id", "workspace_id"],
  usage_days: [],
  usage_team_days: ["user_id", "workspace_id"],
  usage_weeks: ["gpu_type", "state"],
};

function rolled(table: Rolled, { from, to }: Span, filter: Filter): Account {
  const { teamId, userId, workspaceId } = filter;
  const inTime = sql`at >= ${from.toISOString()}::timestamptz and at < ${to.toISOString()}::timestamptz
    and ${is(sql`gpu_type`, filter.gpuType)}`;
  const keys = ["gpu_type", "team_id", "user_id", "workspace_id", "state"];
  const key = sql.raw(keys.map((name) => (lacks[table].includes(name) ? `null::text as ${name}` : name)).join(", "));
  return {
    held: sql`select at, ${key}, ${sql.raw(AMOUNTS.join(", "))}
      from ${sql.raw(table)} where ${inTime} and ${is(sql`team_id`, teamId)} and ${is(sql`user_id`, userId)}
        and ${is(sql`workspace_id`, workspaceId)}`,
    // So few rows that days would not be worth a table.
    pool: sql`select at, gpu_type, state, wall from pool_hours where ${inTime}`,
  };
}

/** The largest part of a span of whole steps that ends by `until`, when there is one. */
export function within(span: Span, seconds: number, until: Date): Span | undefined {
  const from = ceilTo(seconds, span.from);
  const to = floorTo(seconds, span.to < until ? span.to : until);
  return from < to ? { from, to } : undefined;
}

/** What a part leaves of its span: all of it where there is no such part. */
export function around(span: Span, part: Span | undefined): Span[] {
  if (part === undefined) return [span];
  const ends = [
    { from: span.from, to: part.from },
    { from: part.to, to: span.to },
  ];
  return ends.filter(({ from, to }) => from < to);
}
