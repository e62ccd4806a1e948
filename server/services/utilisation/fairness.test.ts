import { expect, it } from "vitest";
import { fairnessOf } from "./fairness.ts";

const of = (teamId: string, promised: number, delivered: number) => ({ teamId, promised, delivered });

it("is one where every team got the same part of its promise, whatever the amounts", () => {
  expect(fairnessOf([of("a", 10, 9), of("b", 100, 90), of("c", 0, 0)])).toBeCloseTo(1);
  expect(fairnessOf([of("a", 10, 0), of("b", 10, 0)])).toBe(1);
});

it("falls to a half where one of two got all, and adds what belongs to one team", () => {
  expect(fairnessOf([of("a", 10, 10), of("b", 10, 0)])).toBeCloseTo(0.5);
  expect(fairnessOf([of("a", 5, 5), of("a", 5, 0), of("b", 10, 5)])).toBeCloseTo(1);
});

it("has nothing to compare where fewer than two teams shared a busy device", () => {
  expect(fairnessOf([])).toBeNull();
  expect(fairnessOf([of("a", 10, 5)])).toBeNull();
});
