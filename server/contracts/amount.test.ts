import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatMilli, parseAmount, parseAmounts, WHOLE } from "./amount.ts";
import { typedAmount } from "./typed-amount.ts";

const GIB = 1024 ** 3;
const milli = (text: string) => {
  const parsed = parseAmount(text);
  return parsed.ok && parsed.amount.kind === "compute" ? parsed.amount.milli : parsed;
};
const bytes = (text: string) => {
  const parsed = parseAmount(text);
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
    const parsed = parseAmount(text);
    expect(parsed).toMatchObject({ ok: false, reason: { rule: "amount", hint } });
    if (!parsed.ok) expect(parsed.reason.message).toContain(part);
  });

  test("is a positive whole number of thousandths or bytes, or is answered with a sentence", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ maxLength: 32 }), fc.double().map(String), fc.integer().map(String)), (text) => {
        const parsed = parseAmount(text);
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
    expect(parseAmounts("0.25", "4G", "0.5")).toEqual({ ok: true, amount: both });
    expect(parseAmounts("", "4G", "0.5")).toEqual({ ok: true, amount: { ...both, milli: 500 } });
    expect(parseAmounts("4G", undefined, "0.5")).toEqual(parseAmount("4G"));
  });

  test("is the workspace's default where nothing is typed, and memory alone where that is memory", () => {
    expect(parseAmounts("", undefined, "2")).toEqual(parseAmount("2"));
    expect(parseAmounts(" ", undefined, "40G")).toEqual(parseAmount("40G"));
    expect(parseAmounts("", "8G", "40G")).toEqual(parseAmount("8G"));
  });

  test.each([
    ["4G", "8G", "given twice", "%gpu attach --mem 8G"],
    ["0.5", "0.5", "no GPU memory", "%gpu attach 0.5 --mem 4G"],
    ["0.5", "0G", "more than 0", "%gpu attach 4G"],
    ["2", "8G", "borrowed whole", "%gpu attach 2"],
    ["0,5", "8G", "with a point", "%gpu attach 0.5"],
  ])("%j and %j are answered with a sentence and what to type", (text, memory, part, hint) => {
    const parsed = parseAmounts(text, memory, "0.5");
    expect(parsed).toMatchObject({ ok: false, reason: { rule: "amount", hint } });
    if (!parsed.ok) expect(parsed.reason.message).toContain(part);
  });
});

describe("an amount in an input", () => {
  test("is the text without the spaces around it, or refused with what to type", () => {
    expect(typedAmount.parse(" 40G ")).toBe("40G");
    const refused = ["", "1.5", "0,5", "50%", "half", "0", "-1", "0.0001", "2x0.5", "9".repeat(40)];
    for (const text of refused) expect(typedAmount.safeParse(text).error?.issues[0]?.message, text).toMatch(/\w+\./);
    expect(typedAmount.safeParse("1.5").error?.issues[0]?.message).toContain("use 1 or 2");
    expect(typedAmount.safeParse("").error?.issues[0]?.message).toContain("An amount is needed");
  });
});
