// @vitest-environment happy-dom
import { screen, within } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { show } from "#components/testing.tsx";
import { DataTable } from "./data-table.tsx";

vi.mock("next/navigation", () => ({ useSearchParams: () => new URLSearchParams() }));

const columns = [{ id: "name", header: "Name", cell: (name: string) => name, sort: (name: string) => name }];
const table = (rows: string[]) => (
  <DataTable caption="Teams" rows={rows} columns={columns} rowKey={(name) => name} filter={(name) => name} />
);
const shown = () => [...document.querySelectorAll("tbody tr")].map((row) => row.textContent);

it("shows the rows that have every word of the filter, and says which words none has", async () => {
  const { person } = show(table(["vision lab", "speech lab", "vision"]));
  const filter = screen.getByRole("searchbox", { name: "Filter" });
  await person.type(filter, "lab vis");
  expect(shown()).toEqual(["vision lab"]);
  expect(screen.getByText("1 of 3")).toBeTruthy();
  await person.type(filter, "x");
  expect(shown()).toEqual(["Nothing matches “lab visx”."]);
});

it("sorts by a header, the other way at the second press, and says so to a screen reader", async () => {
  const { person } = show(table(["b", "c", "a"]));
  const header = screen.getByRole("columnheader", { name: "Name" });
  await person.click(within(header).getByRole("button"));
  expect([header.getAttribute("aria-sort"), ...shown()]).toEqual(["ascending", "a", "b", "c"]);
  await person.click(within(header).getByRole("button"));
  expect([header.getAttribute("aria-sort"), ...shown()]).toEqual(["descending", "c", "b", "a"]);
});

it("says that it is empty", () => {
  show(table([]));
  expect(shown()).toEqual(["Nothing here."]);
});
