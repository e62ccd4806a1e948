import { eq } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { type CostReport, type CostsInput, costReport, costsInput } from "#server/contracts/cost.ts";
import { costMonths } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { type By, compute } from "./compute.ts";
import { monthOf } from "./month.ts";

/**
 * A month's costs: as they were when it was closed, else with today's prices. A lead sees the own team's lines. Lines are
 * as fine as `by` at least.
 */
export async function report(ctx: Context, raw: CostsInput = {}, by: By = "workspace"): Promise<CostReport> {
  const { month, teamId } = parse(costsInput, raw);
  authorize(ctx.principal, "cost.read", { teamId });
  const wanted = month ?? monthOf(ctx.now());
  if (wanted > monthOf(ctx.now())) throw new SluiceError("invalid", "month: This month has not begun.");
  const whole = (await closedReport(ctx, wanted)) ?? (await compute(ctx, wanted, by));
  return teamId === undefined ? whole : forTeam(whole, teamId);
}

/** The report of a closed month. */
export async function closedReport(ctx: Context, month: string): Promise<CostReport | undefined> {
  const [row] = await ctx.db.select().from(costMonths).where(eq(costMonths.month, month));
  return row && costReport.parse(row.report);
}

function forTeam(whole: CostReport, teamId: string): CostReport {
  const lines = whole.lines.filter((line) => line.teamId === teamId);
  const sumOf = (gpuType: string, pick: "hours" | "cents") =>
    lines.filter((line) => line.gpuType === gpuType).reduce((sum, line) => sum + (line[pick] ?? 0), 0);
  const types = whole.types.map((type) => ({
    ...type,
    hours: sumOf(type.gpuType, "hours"),
    cents: sumOf(type.gpuType, "cents"),
  }));
  return { ...whole, types, lines, cents: lines.reduce((sum, line) => sum + (line.cents ?? 0), 0) };
}
