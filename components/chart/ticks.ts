/** Where the marks of an axis stand. Pure, so that charts are drawn on the server and carry no code to the browser. */
import { clockIn } from "#server/contracts/time-zone.ts";

/** From 0 to at least `max` in 2 to 5 equal steps of a round size: 1, 2 or 5 times a power of `base`. */
export function valueTicks(max: number, base: 10 | 1024 = 10): number[] {
  const top = max > 0 ? max : 1;
  let step = base ** Math.floor(Math.log(top) / Math.log(base));
  if (base === 1024) while (top / step > 4) step *= 2;
  else for (const factor of [2, 2.5, 2, 2, 2.5, 2]) if (top / step > 4) step *= factor;
  while (top / step <= 1.5) step /= 2;
  const count = Math.ceil(top / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, index) => index * step);
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY, 91 * DAY]; // biome-ignore format: one line

/** Instants between two that are round in a time zone, at most `most`, and how to write them there. */
export function timeTicks(from: number, to: number, zone: string, most = 6): { at: number; label: string }[] {
  const step = STEPS.find((one) => (to - from) / one <= most) ?? 364 * DAY;
  const ahead = Date.parse(`${clockIn(zone, from)}Z`) - Math.floor(from / 1000) * 1000;
  const first = Math.ceil((from + ahead) / step) * step - ahead;
  const ticks = [];
  for (let at = first; at <= to; at += step) ticks.push({ at, label: tickLabel(zone, at, step) });
  return ticks;
}

function tickLabel(zone: string, at: number, step: number): string {
  const clock = clockIn(zone, at);
  return step < DAY ? clock.slice(11, 16) : clock.slice(5, 10);
}
