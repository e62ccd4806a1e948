// @vitest-environment happy-dom
import { fireEvent, screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { show } from "#components/testing.tsx";
import { daysOfWindows } from "./week.ts";
import { WeekGrid } from "./week-grid.tsx";

const DAY = 1440;
const week = () => (
  <WeekGrid
    label="Calendar of vision"
    days={daysOfWindows(
      [
        { fromMinute: 22 * 60, toMinute: DAY + 2 * 60, text: "limit 1.0" },
        { fromMinute: DAY + 60, toMinute: DAY + 12 * 60, text: "limit 4.0" },
      ],
      ({ text }) => text,
      () => "more",
    )}
  />
);
const slider = () => screen.getByRole("slider", { name: "Values: Calendar of vision" });

it("reads out each block in the order of time, also to a screen reader", async () => {
  const { person } = show(week());
  await person.tab();
  expect(slider().getAttribute("aria-valuetext")).toBe("Mon 22:00 to 24:00: limit 1.0");
  await person.keyboard("{ArrowDown}{ArrowDown}");
  expect(slider().textContent).toBe("Tue 00:00 to 02:00: limit 1.0");
  await person.keyboard("{End}");
  expect(slider().textContent).toBe("Tue 01:00 to 12:00: limit 4.0");
  await person.keyboard("{Home}{ArrowUp}");
  expect(slider().textContent).toBe("Mon 22:00 to 24:00: limit 1.0");
});

it("reads out the block below the pointer, and nothing beside it", () => {
  show(week());
  fireEvent.pointerMove(screen.getByText("limit 4.0"));
  expect(slider().textContent).toBe("Tue 01:00 to 12:00: limit 4.0");
  fireEvent.pointerMove(screen.getByText("Wed"));
  expect(slider().textContent).toBe("");
});

it("shows blocks that overlap below each other, and the number of a narrow one", () => {
  show(week());
  const tops = [...document.querySelectorAll<HTMLElement>("[data-at]")].map(({ style, textContent }) => [
    style.top,
    textContent,
  ]);
  expect(tops).toEqual([
    ["0rem", "1"],
    ["0rem", "1"],
    ["1.25rem", "limit 4.0"],
  ]);
});
