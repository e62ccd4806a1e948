import { authorize, type Context } from "#server/context.ts";
import type { CostReport, CostsInput } from "#server/contracts/cost.ts";
import { firstMonth } from "./first-month.ts";
import { monthOf, monthSpan } from "./month.ts";
import { report } from "./report.ts";

const MONTHS = 6;

/** The cost of one month, in hundredths of the currency's unit; null: no GPU type had a price. */
export type MonthCost = { month: string; hours: number; cents: number | null; isClosed: boolean };

/**
 * The costs of up to six months, ending with `month`; none before the first GPU joined. A lead must name a team. `known`
 * is the report of `month` and `teamId` where the caller has it, because each report reads the accounts of a month.
 */
export async function trend(
  ctx: Context,
  { month, teamId }: Pick<CostsInput, "month" | "teamId">,
  known?: CostReport,
): Promise<MonthCost[]> {
  authorize(ctx.principal, "cost.read", { teamId });
  const first = await firstMonth(ctx);
  const months: string[] = [];
  for (let each = month ?? monthOf(ctx.now()); each >= first && months.length < MONTHS; each = before(each)) {
    months.unshift(each);
  }
  const found: MonthCost[] = [];
  // Sequential: each report reads the accounts of a whole month.
  for (const each of months) {
    const { lines, types, cents, closed } =
      each === known?.month ? known : await report(ctx, { month: each, teamId }, "team");
    const hours = lines.reduce((sum, line) => sum + line.hours, 0);
    found.push({ month: each, hours, cents: types.length === 0 ? null : cents, isClosed: closed !== null });
  }
  return found;
}

const before = (month: string): string => monthOf(new Date(monthSpan(month).from.getTime() - 1));
