import { expect, it } from "vitest";
import { particulars } from "./particulars.ts";

const told = (detail: Record<string, unknown>) => particulars(detail, "Europe/Berlin");

it("says of an edit what was and what is, and nothing of what stayed", () => {
  const before = { guaranteedMilli: 8000, limitMilli: 40_000, weight: 1, budgetMilliHours: null };
  expect(told({ ...before, gpuType: "h200", limitMilli: 60_000, before })).toBe("limit 40.0 → 60.0, gpu type h200");
  expect(told({ name: "data", before: { sizeBytes: null }, after: { sizeBytes: 2 ** 30 } })).toBe(
    "size none → 1.0 GiB, name data",
  );
  expect(told({ before: "offered", after: "retired", version: "0123" })).toBe("offered → retired, version 0123");
  expect(told({ before: null, after: 3600 })).toBe("none → 3600");
});

it("says what was removed or made, where there is nothing beside it", () => {
  expect(told({ before: { role: "lead" } })).toBe("before (role lead)");
  expect(told({ role: "lead", before: null })).toBe("role lead");
});

it("names an amount once that is there as typed and in thousandths", () => {
  expect(told({ amount: "0.1", milli: 100, gpuType: "soft" })).toBe("amount 0.1, gpu type soft");
});

it("shows instants by the reader's clocks, and ids short", () => {
  expect(told({ startsAt: "2026-11-30T11:00:00.000Z", milli: 4000 })).toBe(
    "starts at 2026-11-30 12:00:00 UTC+1, amount 4.0",
  );
  expect(told({ version: `imv-${"a".repeat(20)}bcdefg` })).toBe("version imv-…bcdefg");
});

it("gives figures their units", () => {
  const before = { idleSeconds: null, budgetMilliHours: 6_000_000, maxCpuMilli: 8000 };
  const after = { idleSeconds: 2700, budgetMilliHours: 12_000, maxCpuMilli: 500 };
  expect(told({ ...after, before })).toBe(
    "idle none → 45 min, budget 6,000 GPU-h → 12.0 GPU-h, max cpu 8.00 cores → 0.50 cores",
  );
});

it("tells a calendar as its page does", () => {
  const at = (day: number) => ({ fromMinute: day * 1440 + 480, toMinute: day * 1440 + 1200 });
  const windows = [0, 1, 2].map((day) => ({ ...at(day), guaranteedMilli: 500, limitMilli: 1000 }));
  expect(told({ gpuType: "soft", windows, before: [] })).toBe(
    "calendar none → Mon to Wed 08:00 to 20:00: 0.5 guaranteed, limit 1.0, gpu type soft",
  );
  expect(told({ windows: [], before: [{ ...at(6), kind: "batch" }] })).toBe(
    "calendar Sun 08:00 to 20:00: batch work only → none",
  );
  expect(told({ teamIds: ["a", "b"] })).toBe("team ids (a, b)");
});
