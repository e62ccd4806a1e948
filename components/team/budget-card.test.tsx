// @vitest-environment happy-dom
import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { show } from "#components/testing.tsx";
import { BudgetCard } from "./budget-card.tsx";

it("reads out the GPU-hours used and left of each day", async () => {
  const days = [4000, 0, 1000].map((milliHours, index) => ({ day: `2026-02-0${index + 1}`, milliHours }));
  const budget = { gpuType: "soft", milliHours: 10_000, usedMilliHours: 5000, spentAt: null, days };
  const { person } = show(<BudgetCard {...{ budget, month: "2026-02", endsAt: "2026-03-01T00:00:00Z", csv: "" }} />);
  const slider = screen.getByRole("slider");
  expect(slider.getAttribute("aria-valuetext")).toBe("2026-02-03: 1.00 GPU-h used, 5.00 left");
  await person.tab();
  await person.keyboard("{Home}");
  expect(slider.textContent).toBe("2026-02-01: 4.00 GPU-h used, 6.00 left");
});
