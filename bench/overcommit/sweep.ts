/** Recomputes from the ledger how much was ever held at once. */

/** One stretch of time in which something was held; an open end is still held. */
export type Stretch = { key: string; amount: number; from: Date; to: Date | null };

/** For each key: the most that was held at once, and how often a stretch began that went above its bound. */
export type Peak = { peak: number; violations: number };

/** At one instant ends come before beginnings: what is given back in a millisecond may be granted again in it. */
export function sweep(stretches: readonly Stretch[], boundOf: (key: string) => number): Map<string, Peak> {
  const events = stretches.flatMap(({ key, amount, from, to }) => [
    { key, at: from.getTime(), change: amount },
    ...(to === null ? [] : [{ key, at: Math.max(to.getTime(), from.getTime() + 0.5), change: -amount }]),
  ]);
  events.sort((a, b) => a.at - b.at || a.change - b.change);
  const held = new Map<string, number>();
  const peaks = new Map<string, Peak>();
  for (const { key, change } of events) {
    const now = (held.get(key) ?? 0) + change;
    held.set(key, now);
    const before = peaks.get(key) ?? { peak: 0, violations: 0 };
    const violated = change > 0 && now > boundOf(key);
    peaks.set(key, { peak: Math.max(before.peak, now), violations: before.violations + (violated ? 1 : 0) });
  }
  return peaks;
}
