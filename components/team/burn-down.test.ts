import { expect, it } from "vitest";
import { burnDown } from "#components/team/burn-down.ts";

const days = [4000, 0, 1000].map((milliHours, index) => ({ day: `2026-02-0${index + 1}`, milliHours }));
const noon = Date.parse("2026-02-03T12:00:00Z");
const budget = { gpuType: "soft", milliHours: 10_000, usedMilliHours: 5000, days };

it("falls by what each day used, down to now", () => {
  const { daysInMonth, soFar, ahead } = burnDown({ ...budget, spentAt: null }, "2026-03-01T00:00:00Z", noon);
  expect(daysInMonth).toBe(28);
  expect(soFar).toEqual([
    { day: 0, part: 1 },
    { day: 1, part: 0.6 },
    { day: 2, part: 0.6 },
    { day: 2.5, part: 0.5 },
  ]);
  expect(ahead).toBeUndefined();
});

it("goes on to nothing when it is spent before the month ends, and never below", () => {
  const spentAt = "2026-02-05T00:00:00Z";
  expect(burnDown({ ...budget, spentAt }, "2026-03-01T00:00:00Z", noon).ahead).toEqual([
    { day: 2.5, part: 0.5 },
    { day: 4, part: 0 },
  ]);
  const over = burnDown({ ...budget, usedMilliHours: 12_000, spentAt: null }, "2026-03-01T00:00:00Z", noon);
  expect(over.soFar.at(-1)).toEqual({ day: 2.5, part: 0 });
});
