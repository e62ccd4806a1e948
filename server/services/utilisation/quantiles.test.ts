import fc from "fast-check";
import { expect, it } from "vitest";
import { noWaits, waitsIn } from "./quantiles.ts";

function kept(waits: readonly number[]): Buffer {
  const buffer = Buffer.alloc(4 * waits.length);
  for (const [index, ms] of waits.entries()) buffer.writeUInt32BE(ms, 4 * index);
  return buffer;
}

/** By sorting. */
function expected(waits: readonly number[], part: number): number {
  const sorted = [...waits].sort((a, b) => a - b);
  const place = part * (sorted.length - 1);
  const [low = 0, high = low] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return (low + (high - low) * (place - Math.floor(place))) / 1000;
}

it("tells what sorting tells, of few and of many, of equal and of different ones", () => {
  const wait = fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 2 ** 31 - 1 }));
  fc.assert(
    fc.property(fc.array(fc.array(wait, { maxLength: 60 }), { maxLength: 5 }), (parts) => {
      const all = parts.flat();
      const wanted =
        all.length === 0
          ? noWaits
          : { grants: all.length, waitMedian: expected(all, 0.5), waitP95: expected(all, 0.95) };
      expect(waitsIn(parts.map(kept))).toEqual(wanted);
    }),
    { numRuns: 300 },
  );
});
