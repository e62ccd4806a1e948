import type { ReservationView } from "#server/contracts/sharing.ts";

/** Of reservations that were made together the next one, and those that follow it; nothing follows one that is alone. */
export type Series<Row> = { next: Row; following: Row[] };

/** Reservations as they were made, once or week by week; they come and go in the order of their times. */
export function seriesOf<Row extends Pick<ReservationView, "id" | "seriesId">>(reservations: Row[]): Series<Row>[] {
  const found = new Map<string, Series<Row>>();
  for (const row of reservations) {
    const key = row.seriesId ?? row.id;
    const series = found.get(key);
    if (series) series.following.push(row);
    else found.set(key, { next: row, following: [] });
  }
  return [...found.values()];
}
