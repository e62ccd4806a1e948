/** Waiting times as they are kept, four bytes each (server/db/schema/usage.ts): pure. */

/** Grants, and how long half of them and 95 of 100 had waited, seconds. */
export type Waits = { grants: number; waitMedian: number | null; waitP95: number | null };
export const noWaits: Waits = { grants: 0, waitMedian: null, waitP95: null };

/** What all of these parts together say. */
export function waitsIn(parts: readonly Buffer[]): Waits {
  const values = new Uint32Array(parts.reduce((sum, part) => sum + part.length / 4, 0));
  let next = 0;
  for (const part of parts) {
    for (let at = 0; at < part.length; at += 4) values[next++] = part.readUInt32BE(at);
  }
  if (values.length === 0) return noWaits;
  return { grants: values.length, waitMedian: quantile(values, 0.5), waitP95: quantile(values, 0.95) };
}

/** Between the two values around the place, in proportion, as percentile_cont does; seconds. Moves the values. */
function quantile(values: Uint32Array, part: number): number {
  const place = part * (values.length - 1);
  const low = putInPlace(values, Math.floor(place));
  const above = values.subarray(Math.floor(place) + 1);
  const high = above.length === 0 ? low : above.reduce((least, value) => Math.min(least, value));
  return (low + (high - low) * (place - Math.floor(place))) / 1000;
}

/**
 * Moves values until the one that belongs at a place if they were sorted is there, none before it is larger and none
 * behind it smaller (Hoare's selection, 1961): of a quarter's waits in a fraction of the time that sorting takes.
 */
function putInPlace(values: Uint32Array, place: number): number {
  const at = (index: number) => values[index] as number;
  let [first, last] = [0, values.length - 1];
  while (first < last) {
    const pivot = at((first + last) >>> 1);
    let [left, right] = [first, last];
    while (left <= right) {
      while (at(left) < pivot) left++;
      while (at(right) > pivot) right--;
      if (left > right) break;
      const moved = at(left);
      values[left++] = at(right);
      values[right--] = moved;
    }
    if (place <= right) last = right;
    else if (place >= left) first = left;
    else break;
  }
  return at(place);
}
