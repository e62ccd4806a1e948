import { expect, it } from "vitest";
import { verdict } from "./verdict.ts";

const money = (cents: number) => `€${(cents / 100).toFixed(2)}`;
const now = { waitP95: 540, cents: 1000, refused: 3, gaveUp: 1200 };

it("names what a proposal changes, and leaves out what stays", () => {
  expect(verdict(now, { ...now, waitP95: 120, cents: 2000 }, money)).toBe(
    "Now → proposed: p95 wait 9 min → 2 min, cost €10.00 → €20.00.",
  );
  expect(verdict(now, { waitP95: null, cents: null, refused: 0, gaveUp: 0 }, money)).toBe(
    "Now → proposed: p95 wait 9 min → none, gave up waiting 1,200 → 0, refused 3 → 0, cost €10.00 → no price.",
  );
});

it("says that nothing changes", () => {
  expect(verdict(now, now, money)).toBe("Waits, refusals and cost stay as they are now.");
});
