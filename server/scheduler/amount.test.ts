import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { chargeOn, formatBytes, formatMilli, formatQuota, memoryOn, WHOLE } from "./amount.ts";

const GIB = 1024 ** 3;
describe("the charge", () => {
  const memory = fc.integer({ min: 1, max: 2 ** 48 });

  test("of memory is its part of the device, rounded up", () => {
    expect(chargeOn({ milli: 1, memoryBytes: 4 * GIB }, 8 * GIB)).toBe(500);
    expect(chargeOn({ milli: 1, memoryBytes: 4 * GIB + 1 }, 8 * GIB)).toBe(501);
    expect(chargeOn({ milli: 700, memoryBytes: 4 * GIB }, 8 * GIB)).toBe(700);
    expect(chargeOn({ milli: 500, memoryBytes: 0 }, 8 * GIB)).toBe(500);
  });

  test("that adds up to one GPU fits its memory, so two halves really fit", () => {
    fc.assert(
      fc.property(memory, fc.array(fc.integer({ min: 1, max: 500 }), { maxLength: 8 }), (total, asked) => {
        const sum = asked.reduce((a, b) => a + b, 0);
        fc.pre(sum <= WHOLE);
        return asked.reduce((used, one) => used + memoryOn({ milli: one, memoryBytes: 0 }, total), 0) <= total;
      }),
    );
    expect(2 * memoryOn({ milli: 500, memoryBytes: 0 }, 8 * GIB)).toBe(8 * GIB);
  });

  test("covers the memory it pays for", () => {
    fc.assert(
      fc.property(memory, fc.double({ min: 0.0001, max: 1, noNaN: true }), (total, part) => {
        const memoryBytes = Math.max(1, Math.floor(total * part));
        const charge = chargeOn({ milli: 1, memoryBytes }, total);
        return BigInt(charge) * BigInt(total) >= BigInt(memoryBytes) * 1000n && charge >= 1 && charge <= WHOLE;
      }),
    );
  });
});

test("amounts and memory are written the way the product speaks", () => {
  expect([500, 1000, 2000, 250].map(formatMilli)).toEqual(["0.5", "1", "2", "0.25"]);
  expect([500, 1000, 250].map(formatQuota)).toEqual(["0.5", "1.0", "0.25"]);
  expect([4 * GIB, 512 * 1024 ** 2].map(formatBytes)).toEqual(["4.0 GiB", "512 MiB"]);
});
