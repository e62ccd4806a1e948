/** What a pool costs over a stretch of time, by the prices of the costs page. Pure. */
import type { Time } from "#server/scheduler/simulate/outcome.ts";

/** Millionths of the currency: of one GPU for an hour, or of all hardware of the type for a calendar month. */
export type Price = { basis: "hour" | "month"; micro: number };

/**
 * Hardware that is paid by the month is of the pool as it is now: a pool of another size costs in proportion. Null where
 * there is no price, or no pool to set it against.
 */
export function costOf(price: Price | undefined, gpus: number, gpusNow: number, time: Time): number | null {
  if (price === undefined) return null;
  if (price.basis === "hour") return Math.round((price.micro / 1e4) * gpus * ((time.to - time.from) / 3_600_000));
  if (gpusNow === 0) return null;
  return Math.round((price.micro / 1e4) * monthsIn(time) * (gpus / gpusNow));
}

/** Months, as parts of each calendar month. */
function monthsIn({ from, to }: Time): number {
  let months = 0;
  for (let at = from; at < to; ) {
    const date = new Date(at);
    const [first, next] = [0, 1].map((add) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + add, 1));
    if (first === undefined || next === undefined) break;
    months += (Math.min(next, to) - at) / (next - first);
    at = next;
  }
  return months;
}
