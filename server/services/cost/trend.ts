import { authorize, type Context } from "#server/context.ts";
import type { CostsInput } from "#server/contracts/cost.ts";
import { firstMonth } from "./first-month.ts";
import { monthOf, monthSpan } from "./month.ts";
import { report } from "./report.ts";

const MONTHS = 6;

/** What one month cost, in hundredths of the currency's unit; null: nothing in it had a price. */
export type MonthCost = { month: string; hours: number; cents: number | null; isClosed: boolean };

/** The costs of up to six months, the asked one last; none before the first GPU joined. A lead names the own team. */
export async function trend(
  ctx: Context,
  { month, teamId }: Pick<CostsInput, "month" | "teamId">,
): Promise<MonthCost[]> {
  authorize(ctx.principal, "cost.read", { teamId });
  const first = await firstMonth(ctx);
  const months: string[] = [];
  for (let each = month ?? monthOf(ctx.now()); each >= first && months.length < MONTHS; each = before(each)) {
    months.unshift(each);
  }
  const found: MonthCost[] = [];
  // One after the other: each reads a month's accounts.
  for (const each of months) {
    const { lines, types, cents, closed } = await report(ctx, { month: each, teamId }, "team");
    const hours = lines.reduce((sum, line) => sum + line.hours, 0);
    found.push({ month: each, hours, cents: types.length === 0 ? null : cents, isClosed: closed !== null });
  }
  return found;
}

const before = (month: string): string => monthOf(new Date(monthSpan(month).from.getTime() - 1));
