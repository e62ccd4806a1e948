// @vitest-environment happy-dom
import { fireEvent, screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { show } from "#components/testing.tsx";
import { TimeChart } from "./time-chart.tsx";

const at = (minute: number) => new Date(Date.UTC(2026, 10, 21, 10, minute)).toISOString();
const bins = [1, 3, 2].map((cores, index) => ({ from: at(index), to: at(index + 1), values: { cores } }));
const chart = (limits: { value: number; label: string }[] = []) => (
  <TimeChart
    label="CPU"
    series={[{ key: "cores", label: "CPU", look: "used" }]}
    {...{ bins, limits, from: at(0), to: at(3), zone: "UTC" }}
    format={(value) => `${value} cores`}
  />
);
const slider = () => screen.getByRole("slider", { name: "Values: CPU" });
const read = () => slider().textContent;

it("reads out each bar with the arrow keys, the latest first, also to a screen reader", async () => {
  const { person } = show(chart());
  await person.tab();
  expect(document.activeElement).toBe(slider());
  expect(read()).toBe("");
  await person.keyboard("{ArrowLeft}");
  expect(read()).toBe("2026-11-21 10:02 UTC: 2 cores");
  await person.keyboard("{ArrowLeft}");
  expect(slider().getAttribute("aria-valuetext")).toBe("2026-11-21 10:01 UTC: 3 cores");
  await person.keyboard("{ArrowLeft}{ArrowLeft}");
  expect(read()).toBe("2026-11-21 10:00 UTC: 1 cores");
  await person.keyboard("{End}{ArrowRight}");
  expect(read()).toBe("2026-11-21 10:02 UTC: 2 cores");
  await person.tab();
  expect(read()).toBe("");
});

it("reads out the bar below the pointer", () => {
  show(chart());
  slider().getBoundingClientRect = () => new DOMRect(100, 0, 300, 100);
  fireEvent.pointerMove(slider(), { clientX: 250 });
  expect(read()).toBe("2026-11-21 10:01 UTC: 3 cores");
  fireEvent.pointerLeave(slider());
  expect(read()).toBe("");
});

it("draws a limit near the values, and only names a limit that would flatten them", () => {
  const lines = () => document.querySelectorAll(".border-dashed.absolute").length;
  const { showAgain } = show(chart([{ value: 4, label: "limit" }]));
  expect(screen.getByText("limit 4 cores")).toBeDefined();
  expect(lines()).toBe(1);
  showAgain(chart([{ value: 64, label: "limit" }]));
  expect(screen.getByText("limit 64 cores, above this axis")).toBeDefined();
  expect(lines()).toBe(0);
});
