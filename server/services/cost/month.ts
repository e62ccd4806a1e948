/** Calendar months in UTC. */

export type MonthSpan = { from: Date; end: Date };

/** `2026-11` → its first instant and the first of the next. */
export function monthSpan(month: string): MonthSpan {
  const [year = 0, number = 1] = month.split("-").map(Number);
  return { from: new Date(Date.UTC(year, number - 1, 1)), end: new Date(Date.UTC(year, number, 1)) };
}

/** The month of an instant. */
export const monthOf = (at: Date): string => at.toISOString().slice(0, 7);
