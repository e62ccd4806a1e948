/** `2026-11`, and steps between months. */

/** The month that an address asks for; the current one where it asks for none, or for one that has not come. */
export function askedMonth(asked: string | string[] | undefined, now: Date): { month: string; thisMonth: string } {
  const thisMonth = now.toISOString().slice(0, 7);
  const wanted = typeof asked === "string" && /^20\d\d-(0[1-9]|1[0-2])$/.test(asked) ? asked : "";
  return { month: wanted !== "" && wanted <= thisMonth ? wanted : thisMonth, thisMonth };
}

/** The month so many later. */
export function shiftMonth(month: string, by: number): string {
  const [year = 0, number = 1] = month.split("-").map(Number);
  return new Date(Date.UTC(year, number - 1 + by, 1)).toISOString().slice(0, 7);
}
