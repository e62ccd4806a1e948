/** Where the marks of an axis stand. Pure, so that charts are drawn on the server and carry no code to the browser. */

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

/** Round instants between two, at most `most`, and how to write them (UTC). */
export function timeTicks(from: number, to: number, most = 6): { at: number; label: string }[] {
  const step = STEPS.find((one) => (to - from) / one <= most) ?? 364 * DAY;
  const first = Math.ceil(from / step) * step;
  const ticks = [];
  for (let at = first; at <= to; at += step) ticks.push({ at, label: tickLabel(at, step) });
  return ticks;
}

function tickLabel(at: number, step: number): string {
  const iso = new Date(at).toISOString();
  return step < DAY ? iso.slice(11, 16) : iso.slice(5, 10);
}
