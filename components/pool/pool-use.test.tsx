// @vitest-environment happy-dom
import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { show } from "#components/testing.tsx";
import { PoolUse } from "./pool-use.tsx";

const at = (hour: number) => new Date(Date.UTC(2026, 10, 21, hour)).toISOString();
const bin = (hour: number, parts: Record<string, number>) => ({
  ...{ from: at(hour), to: at(hour + 1), used: 0, heldIdle: 0, free: 0, draining: 0, lost: 0 },
  ...parts,
});

it("shows utilization in percent of the pool, and no bin without a GPU", async () => {
  const bins = [
    bin(8, { lost: 1 }),
    bin(9, { used: 0.25, free: 0.25 }),
    bin(10, { used: 0.5, heldIdle: 1, free: 0.5 }),
  ];
  const { person, calls } = show(<PoolUse />, () => ({ from: at(8), to: at(11), bins }));
  const slider = await screen.findByRole("slider");
  expect(slider.getAttribute("aria-valuemax")).toBe("2");
  await person.tab();
  await person.keyboard("{End}");
  expect(slider.textContent).toContain("computing 25 %, held, idle 50 %");
  await person.keyboard("{Home}");
  expect(slider.textContent).toContain("computing 50 %, held, idle 0 %");
  expect(calls).toHaveLength(1);
});

it("shows no chart without data", () => {
  show(<PoolUse />, () => ({ from: at(8), to: at(9), bins: [] }));
  expect(screen.queryByRole("slider")).toBeNull();
});
