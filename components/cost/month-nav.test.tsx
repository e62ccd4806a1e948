// @vitest-environment happy-dom
import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { show } from "#components/testing.tsx";
import { MonthNav } from "./month-nav.tsx";

const nav = (month: string) => (
  <MonthNav {...{ month, first: "2026-09", thisMonth: "2026-11" }} address={({ month: to }) => `/costs?month=${to}`} />
);
const parts = () => [...screen.getByRole("navigation", { name: "Month" }).children].map((part) => part.tagName);

it("leads to the months beside this one, within those with a GPU in the pool", () => {
  const { showAgain } = show(nav("2026-10"));
  const link = (name: string) => screen.queryByRole("link", { name })?.getAttribute("href");
  expect(link("Previous month, 2026-09")).toBe("/costs?month=2026-09");
  expect(link("Next month, 2026-11")).toBe("/costs?month=2026-11");
  showAgain(nav("2026-11"));
  expect(link("Next month, 2026-12")).toBeUndefined();
  showAgain(nav("2026-09"));
  expect(link("Previous month, 2026-08")).toBeUndefined();
});

it("keeps the place of a month that is missing, so that a second click meets nothing else", () => {
  const { showAgain } = show(nav("2026-10"));
  expect(parts()).toEqual(["A", "SPAN", "A"]);
  showAgain(nav("2026-11"));
  expect(parts()).toEqual(["A", "SPAN", "SPAN"]);
});
