import { sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import type { CostLine, CostReport } from "#server/contracts/cost.ts";
import { gpuPrices } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { account } from "#server/services/utilisation/account.ts";
import type { Span } from "#server/services/utilisation/ledger.ts";
import { monthSpan } from "./month.ts";
import { splitCents } from "./split.ts";

type Held = Omit<CostLine, "what" | "cents"> & { state: State };
type State = "open" | "draining" | "lost";
type Wall = { gpuType: string; state: State; hours: number };

/** What a month cost so far with today's prices. The caller has authorised. */
export async function compute(ctx: Context, month: string): Promise<CostReport> {
  const { from, end } = monthSpan(month);
  const span = { from, to: new Date(Math.max(from.getTime(), Math.min(end.getTime(), ctx.now().getTime()))) };
  const [held, walls, prices] = await Promise.all([
    readHeld(ctx, span),
    readWalls(ctx, span),
    ctx.db.select().from(gpuPrices).orderBy(gpuPrices.gpuType),
  ]);
  const partOfMonth = (span.to.getTime() - from.getTime()) / (end.getTime() - from.getTime());
  const types: CostReport["types"] = [];
  const lines: CostLine[] = [];
  for (const { gpuType, basis, micro, version } of prices) {
    const ofType = linesOf(gpuType, held, walls);
    const hours = ofType.reduce((sum, line) => sum + line.hours, 0);
    const cents = Math.round((micro / 1e4) * (basis === "hour" ? hours : partOfMonth));
    const parts = splitCents(
      cents,
      // Hardware that was not in the pool for a moment is paid for all the same.
      hours > 0 ? ofType.map((line) => line.hours) : ofType.map((line) => (line.what === "free" ? 1 : 0)),
    );
    types.push({ gpuType, basis, amount: micro / 1e6, version, hours, cents });
    lines.push(...ofType.map((line, index) => ({ ...line, cents: parts[index] ?? 0 })));
  }
  const priced = new Set(prices.map((price) => price.gpuType));
  return {
    month,
    from: span.from.toISOString(),
    to: span.to.toISOString(),
    currency: env().SLUICE_CURRENCY,
    closed: null,
    types,
    unpriced: [...new Set(walls.map((wall) => wall.gpuType))].filter((type) => !priced.has(type)).sort(),
    lines: lines.filter((line) => line.hours > 0 || line.cents > 0),
    cents: types.reduce((sum, type) => sum + type.cents, 0),
  };
}

/** Who held a type for how long, and the three ways in which nobody did. */
function linesOf(gpuType: string, held: readonly Held[], walls: readonly Wall[]): Omit<CostLine, "cents">[] {
  const ofType = held.filter((row) => row.gpuType === gpuType);
  const leased = new Map<string, Omit<CostLine, "cents">>();
  for (const { teamId, teamName, userId, userName, workspaceId, workspaceName, hours } of ofType) {
    const key = `${teamId}/${userId}/${workspaceId}`;
    const holder = { teamId, teamName, userId, userName, workspaceId, workspaceName };
    leased.set(key, { gpuType, what: "leased", ...holder, hours: (leased.get(key)?.hours ?? 0) + hours });
  }
  const nobody = { teamId: null, teamName: null, userId: null, userName: null, workspaceId: null, workspaceName: null };
  const rest = (["open", "draining", "lost"] as const).map((state) => {
    const hoursIn = (rows: readonly { state: State; hours: number }[]) =>
      rows.filter((row) => row.state === state).reduce((sum, row) => sum + row.hours, 0);
    const wall = hoursIn(walls.filter((row) => row.gpuType === gpuType));
    const what = state === "open" ? ("free" as const) : state;
    return { gpuType, what, ...nobody, hours: Math.max(0, wall - hoursIn(ofType)) };
  });
  return [...leased.values(), ...rest];
}

const DAY_S = 86_400;

async function readHeld(ctx: Context, span: Span): Promise<Held[]> {
  const { held } = await account(ctx, span, {}, DAY_S);
  const rows = await ctx.db.execute<Held>(sql`
    with x as (
      select gpu_type, state, team_id, user_id, workspace_id, sum(held)::float8 / 3.6e12 as hours
      from ${held} h group by 1, 2, 3, 4, 5
    )
    select x.gpu_type as "gpuType", x.state, x.team_id as "teamId", t.name as "teamName", x.user_id as "userId",
      u.name as "userName", x.workspace_id as "workspaceId", coalesce(w.name, x.workspace_id) as "workspaceName", x.hours
    from x
    left join teams t on t.id = x.team_id
    left join users u on u.id = x.user_id
    left join workspaces w on w.id = x.workspace_id
    order by 1, 4, 6, 8, 2`);
  return [...rows];
}

async function readWalls(ctx: Context, span: Span): Promise<Wall[]> {
  const { pool } = await account(ctx, span, {}, DAY_S);
  const rows = await ctx.db.execute<Wall>(sql`
    select gpu_type as "gpuType", state, sum(wall)::float8 / 3.6e9 as hours from ${pool} p group by 1, 2`);
  return [...rows];
}
