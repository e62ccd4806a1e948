import { type SQL, sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { usageRollup } from "#server/db/schema/index.ts";
import { around, DAY_S, within } from "./account.ts";
import { type Filter, is, isNarrow, type Span } from "./ledger.ts";
import { type Waits, waitsIn } from "./quantiles.ts";
import type { By } from "./rows.ts";

/** The waits of a group's grants one after the other, as they are kept (server/db/schema/usage.ts); 24 days at most. */
export const waitsOf = sql.raw(`string_agg(int4send(
  greatest(0, least(2147483647, round(date_part('epoch', decided_at - created_at) * 1000)))::int), '')`);

/**
 * How long grants of the span had waited, for those of the rows that are asked for: from what is known by team and type
 * where that tells it. Of persons and workspaces there are rows only, so theirs are read from an index.
 */
export async function readWaits(
  ctx: Context,
  span: Span,
  filter: Filter,
  rows: { by: By; ids: readonly string[] },
  byTeam: readonly ByTeam[],
): Promise<Map<string, Waits>> {
  const alone = rows.by === "person" ? sql`user_id` : rows.by === "workspace" ? sql`workspace_id` : undefined;
  const keyed =
    alone === undefined
      ? byTeam.map(({ teamId, gpuType, waits }) => ({ id: rows.by === "team" ? teamId : gpuType, waits }))
      : await readRows(ctx, span, filter, alone, rows.ids);
  const groups = Map.groupBy(keyed, ({ id }) => id);
  return new Map(rows.ids.map((id) => [id, waitsIn((groups.get(id) ?? []).map(({ waits }) => waits))] as const));
}

export type ByTeam = { teamId: string; gpuType: string; waits: Buffer };

/** The waits of all grants of the span; whole days come from what is rolled up. */
export async function readWaitsByTeam(ctx: Context, span: Span, filter: Filter): Promise<ByTeam[]> {
  const [mark] = await ctx.db.select().from(usageRollup);
  const days = isNarrow(filter) ? undefined : within(span, DAY_S, mark?.rolledTo ?? span.from);
  const ofTeam = sql`${is(sql`gpu_type`, filter.gpuType)} and ${is(sql`team_id`, filter.teamId)}`;
  const parts = [
    ...around(span, days).map(
      (part) => sql`(select team_id, gpu_type, ${waitsOf} as waits from lease_requests
        where ${granted(part, filter)} group by 1, 2)`,
    ),
    ...(days === undefined
      ? []
      : [sql`(select team_id, gpu_type, waits from wait_days where ${during(sql`at`, days)} and ${ofTeam})`]),
  ];
  const all = sql.join(parts, sql` union all `);
  const rows = await ctx.db.execute<ByTeam>(sql`
    select team_id as "teamId", gpu_type as "gpuType", string_agg(waits, '') as waits from (${all}) parts group by 1, 2`);
  return [...rows];
}

async function readRows(
  ctx: Context,
  span: Span,
  filter: Filter,
  column: SQL,
  ids: readonly string[],
): Promise<{ id: string; waits: Buffer }[]> {
  const rows = await ctx.db.execute<{ id: string; waits: Buffer }>(sql`
    select ${column} as id, ${waitsOf} as waits from lease_requests
    where ${column} = any(${sql.param([...ids])}::text[]) and ${granted(span, filter)} group by 1`);
  return [...rows];
}

const during = (column: SQL, { from, to }: Span): SQL =>
  sql`${column} >= ${from.toISOString()}::timestamptz and ${column} < ${to.toISOString()}::timestamptz`;

const granted = (span: Span, { gpuType, teamId, userId, workspaceId }: Filter): SQL =>
  sql`state = 'granted' and ${during(sql`decided_at`, span)} and ${is(sql`gpu_type`, gpuType)}
    and ${is(sql`team_id`, teamId)} and ${is(sql`user_id`, userId)}
    and ${is(sql`workspace_id`, workspaceId)}`;
