/**
 * Decayed past use. It affects the surplus only: who borrowed much of late comes after who borrowed little. Counted in
 * thousandths of a GPU times seconds, halved every half-life, in whole numbers.
 */

/** Half of what was used counts after so long: a week. */
export const HALF_LIFE_MS = 7 * 24 * 3_600_000;

/** What is left of `amount` after `ms`: exact halves at whole half-lives, a straight line in between. */
export function decayed(amount: number, ms: number, halfLifeMs: number = HALF_LIFE_MS): number {
  // A clock that jumps back makes nobody's use grow.
  if (ms <= 0) return amount;
  const halves = Math.floor(ms / halfLifeMs);
  if (halves >= 60) return 0;
  const rest = BigInt(ms - halves * halfLifeMs);
  const whole = BigInt(amount) / 2n ** BigInt(halves);
  return Number((whole * (2n * BigInt(halfLifeMs) - rest)) / (2n * BigInt(halfLifeMs)));
}

/** The use after `heldMilli` were borrowed for `ms` more. */
export function accrue(amount: number, heldMilli: number, ms: number, halfLifeMs: number = HALF_LIFE_MS): number {
  const seconds = Math.floor(Math.max(0, ms) / 1000);
  return decayed(amount, ms, halfLifeMs) + heldMilli * seconds;
}

/** Use as an average over the half-life, thousandths of a GPU. */
export function averageMilli(amount: number, halfLifeMs: number = HALF_LIFE_MS): number {
  return Math.floor(amount / Math.floor(halfLifeMs / 1000));
}
