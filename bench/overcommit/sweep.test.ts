import { expect, test } from "vitest";
import { type Stretch, sweep } from "./sweep.ts";

const at = (ms: number) => new Date(ms);
const stretch = (amount: number, from: number, to: number | null, key = "gpu"): Stretch => ({
  ...{ key, amount, from: at(from), to: to === null ? null : at(to) },
});

test("finds an over-commit that lasted one millisecond", () => {
  const stretches = [stretch(600, 0, 11), stretch(500, 10, 20)];
  expect(sweep(stretches, () => 1000).get("gpu")).toEqual({ peak: 1100, violations: 1 });
});

test("finds one against a lease that never ended", () => {
  const stretches = [stretch(600, 0, null), stretch(500, 10, 20), stretch(400, 30, 40)];
  expect(sweep(stretches, () => 1000).get("gpu")).toEqual({ peak: 1100, violations: 1 });
});

test("sees none where one ends as the next begins, nor between different devices", () => {
  const stretches = [stretch(1000, 0, 10), stretch(1000, 10, 20), stretch(1000, 5, 15, "other")];
  expect([...sweep(stretches, () => 1000).values()].map((peak) => peak.violations)).toEqual([0, 0]);
});
