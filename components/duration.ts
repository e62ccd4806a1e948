/** Lengths of time as people type them, the same as after `%gpu extend`: `90s`, `20m`, `1h 30m`, `7d`. */

const SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 } as const;
type Unit = keyof typeof SECONDS;

/** Seconds; nothing when it is no length of time. */
export function readDuration(text: string): number | undefined {
  const compact = text.toLowerCase().replace(/\s+/g, "");
  if (!/^(\d+[smhd])+$/.test(compact)) return undefined;
  let seconds = 0;
  for (const [, count, unit] of compact.matchAll(/(?<!\d)(\d+)([smhd])/g))
    seconds += Number(count) * SECONDS[unit as Unit];
  return seconds;
}

/** `5400` → `1h 30m`; `0` → `0s`. What it writes, `readDuration` reads. */
export function writeDuration(seconds: number): string {
  let left = seconds;
  const parts: string[] = [];
  for (const unit of ["d", "h", "m", "s"] as const) {
    const count = Math.floor(left / SECONDS[unit]);
    if (count > 0) parts.push(`${count}${unit}`);
    left -= count * SECONDS[unit];
  }
  return parts.length === 0 ? "0s" : parts.join(" ");
}
