import type { TeamBudget } from "#server/contracts/team.ts";

/** `day`: days since the month began; `part`: of the budget that is left, 0 to 1. */
type Point = { day: number; part: number };

const DAY_MS = 86_400_000;

/** What is left at the end of each day so far, and the way to nothing if the team goes on as now. */
export function burnDown(
  { milliHours, usedMilliHours, spentAt, days }: TeamBudget["budgets"][number],
  endsAt: string,
  now: number = Date.now(),
): { daysInMonth: number; soFar: Point[]; ahead: Point[] | undefined } {
  const end = new Date(endsAt);
  const from = Date.UTC(end.getUTCFullYear(), end.getUTCMonth() - 1, 1);
  const dayOf = (at: number) => Math.max(0, Math.min(end.getTime(), at) - from) / DAY_MS;
  const leftAfter = (used: number) => (milliHours === 0 ? 0 : Math.max(0, 1 - used / milliHours));
  let used = 0;
  const whole = days.slice(0, -1).map(({ milliHours: ofDay }, index) => {
    used += ofDay;
    return { day: index + 1, part: leftAfter(used) };
  });
  const today = { day: dayOf(now), part: leftAfter(usedMilliHours) };
  return {
    daysInMonth: Math.round((end.getTime() - from) / DAY_MS),
    soFar: [{ day: 0, part: leftAfter(0) }, ...whole, today],
    ahead: spentAt === null ? undefined : [today, { day: dayOf(Date.parse(spentAt)), part: 0 }],
  };
}
