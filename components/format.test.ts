import { describe, expect, it } from "vitest";
import {
  formatAmount,
  formatBytes,
  formatChange,
  formatClock,
  formatDuration,
  formatExact,
  formatMark,
  formatPrice,
  formatRelative,
  plural,
} from "./format.ts";

describe("figures on pages", () => {
  it("writes a change in percent of what was before, with its sign", () => {
    expect([formatChange(100, 108), formatChange(100, 88), formatChange(300, 300)]).toEqual(["+8 %", "-12 %", "0 %"]);
  });

  it("writes amounts with one decimal at least and three at most", () => {
    expect([0, 500, 1000, 2000, 250, 125, 1].map(formatAmount)).toEqual([
      "0.0",
      "0.5",
      "1.0",
      "2.0",
      "0.25",
      "0.125",
      "0.001",
    ]);
  });

  it("writes the marks of an axis to as many digits as its steps need", () => {
    const marks = (step: number, ...values: number[]) => values.map((value) => formatMark(value, step));
    expect(marks(500, 0, 500, 1000)).toEqual(["0", "500", "1,000"]);
    expect(marks(0.2, 0, 0.2, 0.4)).toEqual(["0.0", "0.2", "0.4"]);
    expect(marks(0.025, 0, 0.025)).toEqual(["0.000", "0.025"]);
  });

  it("writes prices to their last digit", () => {
    expect([2.15, 0.0042, 48000].map((amount) => formatPrice(amount, "EUR"))).toEqual([
      "€2.15",
      "€0.0042",
      "€48,000.00",
    ]);
  });

  it("writes memory in the largest binary unit that leaves a whole", () => {
    expect([0, 1023, 1024, 4 * 1024 ** 3, 1536 * 1024 ** 2].map(formatBytes)).toEqual([
      "0 B",
      "1023 B",
      "1.0 KiB",
      "4.0 GiB",
      "1.5 GiB",
    ]);
  });

  it("writes lengths in two units at most, and never below zero", () => {
    const minutes = (n: number) => formatDuration(n * 60_000);
    expect(formatDuration(-5)).toBe("0 s");
    expect(formatDuration(59_999)).toBe("59 s");
    expect([1, 59, 65, 47 * 60 + 59, 48 * 60].map(minutes)).toEqual([
      "1 min",
      "59 min",
      "1 h 05 min",
      "47 h 59 min",
      "2 d 0 h",
    ]);
  });

  it("runs a clock for steps", () => {
    expect([0, 7_000, 161_000, 3_729_000].map(formatClock)).toEqual(["0:00", "0:07", "2:41", "1:02:09"]);
  });

  it("says how long ago and how soon in one unit", () => {
    const at = Date.parse("2026-11-21T10:00:00Z");
    const after = (seconds: number) => formatRelative(at, at + seconds * 1000);
    expect([0, 12, 240, 7_300, 200_000].map(after)).toEqual([
      "just now",
      "12 s ago",
      "4 min ago",
      "2 h ago",
      "2 d ago",
    ]);
    expect(after(-240)).toBe("in 4 min");
    // A day that has just begun to pass is still a day, not 23 hours.
    expect([-86_370, -2 * 86_400 + 600, -3 * 86_400 + 600].map(after)).toEqual(["in 24 h", "in 48 h", "in 3 d"]);
  });

  it("gives the exact instant in a zone", () => {
    expect(formatExact("2026-11-21T10:33:41.123Z", "UTC")).toBe("2026-11-21 10:33:41 UTC");
    expect(formatExact("2026-11-21T23:33:41.123Z", "Europe/Berlin")).toBe("2026-11-22 00:33:41 UTC+1");
  });

  it("counts in words", () => {
    expect([plural(1, "person", "people"), plural(3, "person", "people"), plural(0, "workspace")]).toEqual([
      "1 person",
      "3 people",
      "0 workspaces",
    ]);
  });
});
