import { expect, it } from "vitest";
import { formatAmount, readAmount } from "./amount.ts";

it.each([
  ["500m", 0.5],
  ["2", 2],
  ["1Gi", 2 ** 30],
  ["1e3", 1000],
  ["32780340Ki", 32_780_340 * 1024],
  ["128974848000m", 128_974_848],
  ["500000000n", 0.5],
  ["1500u", 0.0015],
  ["2E", 2e18],
  ["1.5Ei", 1.5 * 2 ** 60],
  ["2k", 2000],
  ["1E3", 1000],
  [undefined, 0],
])("reads %s", (written, amount) => {
  expect(readAmount(written)).toBe(amount);
});

it.each([
  ["cpu", "2000m", "2", "2"],
  ["cpu", "1500m", "1.5", "1.5"],
  ["cpu", "1", "1", "1"],
  ["memory", "32780340Ki", "31.2Gi", "31.3Gi"],
  ["memory", "2Gi", "2Gi", "2Gi"],
  ["memory", "1181116006400m", "1.1Gi", "1.1Gi"],
  ["memory", "262145Ki", "256Mi", "257Mi"],
  ["ephemeral-storage", "10737418240", "10Gi", "10Gi"],
  ["memory", "1048064Ki", "1023Mi", "1Gi"],
  ["memory", "1Gi", "1Gi", "1Gi"],
  ["memory", "1048575Ki", "1023Mi", "1Gi"],
  ["memory", "1Mi", "1Mi", "1Mi"],
  ["example.com/gpu", "4", "4", "4"],
])("writes of %s %s as people read it, and promises no more than there is", (name, written, down, up) => {
  const amount = readAmount(written);
  expect([formatAmount(name, amount, Math.floor), formatAmount(name, amount, Math.ceil)]).toEqual([down, up]);
});

it("writes nothing for what is less than it counts in", () => {
  expect(["cpu", "memory", "pods"].map((name) => formatAmount(name, 0, Math.ceil))).toEqual(Array(3).fill(undefined));
  const half = 2 ** 19;
  expect([formatAmount("memory", half, Math.floor), formatAmount("memory", half, Math.ceil)]).toEqual([
    undefined,
    "1Mi",
  ]);
  expect(formatAmount("cpu", readAmount("900u"), Math.floor)).toBeUndefined();
});

it("writes no rest of fractions", () => {
  expect(formatAmount("cpu", readAmount("100m") + readAmount("200m"), Math.ceil)).toBe("0.3");
});
