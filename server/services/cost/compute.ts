import { sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import type { CostLine, CostReport, CostRowsInput } from "#server/contracts/cost.ts";
import { gpuPrices } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { account, DAY_S } from "#server/services/utilisation/account.ts";
import type { Span } from "#server/services/utilisation/ledger.ts";
import { monthSpan } from "./month.ts";
import { splitCents } from "./split.ts";

/** Whose lines: coarser ones are the sums of finer ones, to the cent, and far fewer to read. */
export type By = NonNullable<CostRowsInput["by"]>;

type State = "open" | "draining" | "lost";
type Holder = Omit<CostLine, "gpuType" | "what" | "hours" | "cents">;
/** Time in thousandths of a GPU times microseconds, as the accounts have it: whole numbers, so that sums are exact. */
type Wall = { gpuType: string; state: State; time: bigint };
type Line = Omit<CostLine, "hours" | "cents"> & { time: bigint };

const nobody = { teamId: null, teamName: null, userId: null, userName: null, workspaceId: null, workspaceName: null };
export const toHours = (time: bigint): number => Number(time) / 3.6e12;
const sumOf = (rows: readonly { time: bigint }[]): bigint => rows.reduce((sum, { time }) => sum + time, 0n);

/** What of a month is over, and which part of it that is. */
export function soFar(month: string, now: Date): { span: Span; partOfMonth: number } {
  const { from, end } = monthSpan(month);
  const to = new Date(Math.max(from.getTime(), Math.min(end.getTime(), now.getTime())));
  return { span: { from, to }, partOfMonth: (to.getTime() - from.getTime()) / (end.getTime() - from.getTime()) };
}

/** What a month cost so far with today's prices. The caller has authorised. */
export async function compute(ctx: Context, month: string, by: By): Promise<CostReport> {
  const { span, partOfMonth } = soFar(month, ctx.now());
  const prices = await ctx.db.select().from(gpuPrices).orderBy(gpuPrices.gpuType);
  const priced = new Set(prices.map((price) => price.gpuType));
  const [{ held, heldWalls }, walls] = await Promise.all([readHeld(ctx, span, by), readWalls(ctx, span)]);
  const types: CostReport["types"] = [];
  const lines: CostLine[] = [];
  for (const { gpuType, basis, micro, version } of prices) {
    const ofType = linesOf(gpuType, held, heldWalls, walls);
    const hours = toHours(sumOf(ofType));
    const cents = Math.round((micro / 1e4) * (basis === "hour" ? hours : partOfMonth));
    types.push({ gpuType, basis, amount: micro / 1e6, version, hours, cents });
    lines.push(...withCents(ofType, cents));
  }
  const unpriced = [...new Set(walls.map((wall) => wall.gpuType))].filter((type) => !priced.has(type)).sort();
  for (const gpuType of unpriced) {
    lines.push(...linesOf(gpuType, held, heldWalls, walls).map((line) => withCost(line, null)));
  }
  return {
    month,
    from: span.from.toISOString(),
    to: span.to.toISOString(),
    currency: env().SLUICE_CURRENCY,
    closed: null,
    types,
    unpriced,
    lines: lines.filter((line) => line.hours > 0 || (line.cents ?? 0) > 0),
    cents: types.reduce((sum, type) => sum + type.cents, 0),
  };
}

/** Who held a type for how long, by name, and the three ways in which nobody did. */
function linesOf(gpuType: string, held: readonly Line[], heldWalls: readonly Wall[], walls: readonly Wall[]): Line[] {
  const leased = held
    .filter((line) => line.gpuType === gpuType)
    .map((line) => ({ place: placeOf(line), line }))
    .sort((a, b) => (a.place < b.place ? -1 : 1));
  const rest = (["open", "draining", "lost"] as const).map((state): Line => {
    const timeIn = (rows: readonly Wall[]) =>
      sumOf(rows.filter((row) => row.gpuType === gpuType && row.state === state));
    const left = timeIn(walls) - timeIn(heldWalls);
    return { gpuType, what: state === "open" ? "free" : state, ...nobody, time: left > 0n ? left : 0n };
  });
  return [...leased.map(({ line }) => line), ...rest];
}

const placeOf = ({ teamName, userName, workspaceName, teamId, userId, workspaceId }: Holder): string =>
  [teamName, userName, workspaceName, teamId, userId, workspaceId].join("\n");

const LEVELS = [
  (line: Line) => line.teamId ?? line.what,
  (line: Line) => line.userId,
  (line: Line) => line.workspaceId,
] as const;

/** Splits cents over teams, of each over its persons, and of these over their workspaces, so that every table agrees. */
function withCents(lines: readonly Line[], cents: number, level = 0): CostLine[] {
  const keyOf = LEVELS[level];
  if (lines.length === 1 || keyOf === undefined) {
    return lines.map((line) => withCost(line, cents));
  }
  const groups = [...Map.groupBy(lines, keyOf).values()];
  const times = groups.map((group) => Number(sumOf(group)));
  // Hardware that was not in the pool for a moment is paid for all the same.
  const weights = times.some((time) => time > 0) ? times : groups.map(([first]) => (first?.what === "free" ? 1 : 0));
  const parts = splitCents(cents, weights);
  return groups.flatMap((group, index) => withCents(group, parts[index] ?? 0, level + 1));
}

/** These two are written out: there are thousands of lines, and to spread each takes several times as long. */
function lineOf(row: Holder & { gpuType: string }, time: bigint): Line {
  const { gpuType, teamId, teamName, userId, userName, workspaceId, workspaceName } = row;
  return { gpuType, what: "leased", teamId, teamName, userId, userName, workspaceId, workspaceName, time };
}

function withCost(line: Line, cents: number | null): CostLine {
  const { gpuType, what, teamId, teamName, userId, userName, workspaceId, workspaceName, time } = line;
  return { gpuType, what, teamId, teamName, userId, userName, workspaceId, workspaceName, hours: toHours(time), cents };
}

/** Held time of each GPU type, by holder and by state. */
async function readHeld(ctx: Context, span: Span, by: By): Promise<{ held: Line[]; heldWalls: Wall[] }> {
  const { held } = await account(ctx, span, {}, DAY_S, by === "team" ? "team" : "person");
  const userId = by === "team" ? sql`null::text` : sql`user_id`;
  const workspaceId = by === "workspace" ? sql`workspace_id` : sql`null::text`;
  const rows = await ctx.db.execute<Holder & { gpuType: string; state: State | null; time: string }>(sql`
    with x as (
      select gpu_type, state, team_id, user_id, workspace_id, sum(held)::text as time
      from (select gpu_type, state, team_id, ${userId} as user_id, ${workspaceId} as workspace_id, held
        from ${held} h) y
      group by grouping sets ((gpu_type, team_id, user_id, workspace_id), (gpu_type, state))
    )
    select x.gpu_type as "gpuType", x.state, x.team_id as "teamId", t.name as "teamName", x.user_id as "userId",
      u.name as "userName", x.workspace_id as "workspaceId", coalesce(w.name, x.workspace_id) as "workspaceName", x.time
    from x
    left join teams t on t.id = x.team_id
    left join users u on u.id = x.user_id
    left join workspaces w on w.id = x.workspace_id`);
  const [lines, heldWalls]: [Line[], Wall[]] = [[], []];
  for (const row of rows) {
    const { gpuType, state } = row;
    const time = BigInt(row.time);
    if (state !== null) heldWalls.push({ gpuType, state, time });
    else lines.push(lineOf(row, time));
  }
  return { held: lines, heldWalls };
}

/** How long the devices of each type were in the pool, in which state. */
export async function readWalls(ctx: Context, span: Span): Promise<Wall[]> {
  const { pool } = await account(ctx, span, {}, DAY_S, "team");
  // Of whole devices, a thousand thousandths each.
  const rows = await ctx.db.execute<Omit<Wall, "time"> & { time: string }>(sql`
    select gpu_type as "gpuType", state, (sum(wall) * 1000)::text as time from ${pool} p group by 1, 2`);
  return rows.map(({ time, ...row }) => ({ ...row, time: BigInt(time) }));
}
