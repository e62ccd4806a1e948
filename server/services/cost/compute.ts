import { sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import type { CostLine, CostReport } from "#server/contracts/cost.ts";
import { gpuPrices } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { heldTables, ownSeconds, type Span } from "#server/services/utilisation/held.ts";
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
  for (const { gpuType, basis, micro } of prices) {
    const ofType = linesOf(gpuType, held, walls);
    const hours = ofType.reduce((sum, line) => sum + line.hours, 0);
    const cents = Math.round((micro / 1e4) * (basis === "hour" ? hours : partOfMonth));
    const parts = splitCents(
      cents,
      // Hardware that was not in the pool for a moment is paid for all the same.
      hours > 0 ? ofType.map((line) => line.hours) : ofType.map((line) => (line.what === "free" ? 1 : 0)),
    );
    types.push({ gpuType, basis, amount: micro / 1e6, hours, cents });
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

async function readHeld(ctx: Context, span: Span): Promise<Held[]> {
  const rows = await ctx.db.execute<Held>(sql`
    with ${heldTables(span, {})}
    select h.gpu_type as "gpuType", h.state, h.team_id as "teamId", max(t.name) as "teamName", h.user_id as "userId",
      max(u.name) as "userName", h.workspace_id as "workspaceId", coalesce(max(w.name), h.workspace_id) as "workspaceName",
      (sum(h.milli * ${ownSeconds}) / 3600000)::float8 as hours
    from held h
    left join teams t on t.id = h.team_id
    left join users u on u.id = h.user_id
    left join workspaces w on w.id = h.workspace_id
    where e > s
    group by 1, 2, 3, 5, 7 order by 1, 4, 6, 8, 2`);
  return [...rows];
}

async function readWalls(ctx: Context, span: Span): Promise<Wall[]> {
  const rows = await ctx.db.execute<Wall>(sql`
    with ${heldTables(span, {})}
    select gpu_type as "gpuType", state, (sum(${ownSeconds}) / 3600)::float8 as hours
    from states where e > s group by 1, 2`);
  return [...rows];
}
