/** Budgets in GPU-hours: a ledger of its own, counted from what was leased, which does not decay. */
import type { Budget } from "./types.ts";

const HOUR = 3_600_000;

/** Percentages of a budget at which its team is told. */
export const WARNING_LEVELS = [50, 80, 95, 100] as const;

/** Thousandths of a GPU held for so long, in thousandths of a GPU-hour, rounded down. */
export function milliHours(milli: number, ms: number): number {
  return Number((BigInt(milli) * BigInt(Math.max(0, Math.floor(ms)))) / BigInt(HOUR));
}

/** What is left of a budget; never below 0. */
export function leftOf(budget: Budget): number {
  return Math.max(0, budget.milliHours - budget.usedMilliHours);
}

/** Whether nothing is left until the period ends. */
export function isSpent(budget: Budget | undefined, now: number): boolean {
  return budget !== undefined && now < budget.endsAt && leftOf(budget) === 0;
}

/** The highest warning level that the use has reached; 0 below the first. */
export function warningLevel(budget: Budget): number {
  const reached = WARNING_LEVELS.filter(
    (level) => BigInt(budget.usedMilliHours) * 100n >= BigInt(budget.milliHours) * BigInt(level),
  );
  return reached.at(-1) ?? 0;
}

/** When the budget is used up if the team goes on with what it holds; nothing when it holds nothing. */
export function spentAt(budget: Budget, heldMilli: number, now: number): number | undefined {
  if (heldMilli <= 0) return undefined;
  const at = now + Number((BigInt(leftOf(budget)) * BigInt(HOUR)) / BigInt(heldMilli));
  return at < budget.endsAt ? at : undefined;
}

/** First and last millisecond (exclusive) of the month in which a time lies, UTC. */
export function monthOf(at: number): { from: number; to: number } {
  const date = new Date(at);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return { from: Date.UTC(year, month, 1), to: Date.UTC(year, month + 1, 1) };
}
