import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  chargeOn,
  formatBytes,
  formatMilli,
  formatQuota,
  memoryOn,
  parseAmount,
  parseAmounts,
  WHOLE,
} from "./amount.ts";

const GIB = 1024 ** 3;
const milli = (text: string) => {
  const parsed = parseAmount(text, 500);
  return parsed.ok && parsed.amount.kind === "compute" ? parsed.amount.milli : parsed;
};
const bytes = (text: string) => {
  const parsed = parseAmount(text, 500);
  return parsed.ok && parsed.amount.kind === "memory" ? parsed.amount.bytes : parsed;
};

describe("what people type", () => {
  test.each([
    ["0.5", 500],
    [".25", 250],
    ["1", 1000],
    ["1.0", 1000],
    ["2", 2000],
    [" 0.125 ", 125],
    ["0.001", 1],
    ["", 500],
  ])("%j is %d thousandths", (text, expected) => {
    expect(milli(text)).toBe(expected);
  });

  test.each([
    ["40G", 40 * GIB],
    ["40 GB", 40 * GIB],
    ["2.5GiB", 2.5 * GIB],
    ["512m", 512 * 1024 ** 2],
  ])("%j is GPU memory", (text, expected) => {
    expect(bytes(text)).toBe(expected);
  });

  test.each([
    ["0", "more than 0", "%gpu attach 0.5"],
    ["-0.5", "more than 0", "%gpu attach 0.5"],
    ["0.0", "more than 0", "%gpu attach 0.5"],
    ["0G", "more than 0", "%gpu attach 4G"],
    ["1.5", "use 1 or 2", "%gpu attach 1"],
    ["2.25", "use 2 or 3", "%gpu attach 2"],
    ["0,5", "with a point", "%gpu attach 0.5"],
    ["50%", "part of a GPU", "%gpu attach 0.5"],
    ["0.0005", "three decimals", "%gpu attach 0.001"],
    ["0.1234", "three decimals", "%gpu attach 0.123"],
    ["NaN", "not an amount", "%gpu attach 0.5"],
    ["Infinity", "not an amount", "%gpu attach 0.5"],
    ["1e3", "not an amount", "%gpu attach 0.5"],
    ["half", "not an amount", "%gpu attach 0.5"],
    ["99999999", "more than any pool has", "%gpu attach 1"],
    ["99999999999G", "more than any device has", "%gpu attach 1"],
    // Its charge on a small device would be more than a table holds.
    ["8000000G", "more than any device has", "%gpu attach 1"],
  ])("%j is answered with a sentence and what to type", (text, part, hint) => {
    const parsed = parseAmount(text, 500);
    expect(parsed).toMatchObject({ ok: false, reason: { rule: "amount", hint } });
    if (!parsed.ok) expect(parsed.reason.message).toContain(part);
  });

  test("is a positive whole number of thousandths or bytes, or is answered with a sentence", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ maxLength: 32 }), fc.double().map(String), fc.integer().map(String)), (text) => {
        const parsed = parseAmount(text, 500);
        if (!parsed.ok) return parsed.reason.message.length > 10;
        const value = parsed.amount.kind === "memory" ? parsed.amount.bytes : parsed.amount.milli;
        return Number.isSafeInteger(value) && value > 0;
      }),
    );
  });

  test("reads back what it writes", () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: WHOLE }), (value) => milli(formatMilli(value)) === value));
  });
});

describe("an amount with memory", () => {
  test("is both; without memory it is what the amount says alone", () => {
    const both = { kind: "both", milli: 250, bytes: 4 * GIB };
    expect(parseAmounts("0.25", "4G", 500)).toEqual({ ok: true, amount: both });
    expect(parseAmounts("", "4G", 500)).toEqual({ ok: true, amount: { ...both, milli: 500 } });
    expect(parseAmounts("4G", undefined, 500)).toEqual(parseAmount("4G", 500));
  });

  test.each([
    ["4G", "8G", "given twice", "%gpu attach --mem 8G"],
    ["0.5", "0.5", "no GPU memory", "%gpu attach 0.5 --mem 4G"],
    ["0.5", "0G", "more than 0", "%gpu attach 4G"],
    ["2", "8G", "borrowed whole", "%gpu attach 2"],
    ["0,5", "8G", "with a point", "%gpu attach 0.5"],
  ])("%j and %j are answered with a sentence and what to type", (text, memory, part, hint) => {
    const parsed = parseAmounts(text, memory, 500);
    expect(parsed).toMatchObject({ ok: false, reason: { rule: "amount", hint } });
    if (!parsed.ok) expect(parsed.reason.message).toContain(part);
  });
});

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
