/** Waiting times as they are kept, four bytes each (server/db/schema/usage.ts): pure. */

/** Grants, and how long half of them and 95 of 100 had waited, seconds. */
export type Waits = { grants: number; waitMedian: number | null; waitP95: number | null };
export const noWaits: Waits = { grants: 0, waitMedian: null, waitP95: null };

/** What all of these parts together say. */
export function waitsIn(parts: readonly Buffer[]): Waits {
  const sorted = new Uint32Array(parts.reduce((sum, part) => sum + part.length / 4, 0));
  let next = 0;
  for (const part of parts) {
    for (let at = 0; at < part.length; at += 4) sorted[next++] = part.readUInt32BE(at);
  }
  if (sorted.length === 0) return noWaits;
  sorted.sort();
  return { grants: sorted.length, waitMedian: quantile(sorted, 0.5), waitP95: quantile(sorted, 0.95) };
}

/** Between the two values around the place, in proportion, as percentile_cont does; seconds. */
function quantile(sorted: Uint32Array, part: number): number {
  const place = part * (sorted.length - 1);
  const [low = 0, high = low] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return (low + (high - low) * (place - Math.floor(place))) / 1000;
}
