// @vitest-environment happy-dom
import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { show } from "#components/testing.tsx";
import CommandList from "./command-list.tsx";

const push = vi.hoisted(() => vi.fn());
vi.mock("next/navigation", () => ({ useRouter: () => ({ push }) }));

const destinations = [
  { href: "/calendars", label: "Calendars", group: "Pages" },
  { href: "/costs", label: "Costs", group: "Pages" },
];

it("goes to the page that a few letters name, and says when nothing has a name", async () => {
  const onClose = vi.fn();
  const { person } = show(<CommandList destinations={destinations} onClose={onClose} />, () => ({ workspaces: [] }));
  const search = screen.getByRole("combobox");
  await person.type(search, "no such thing");
  expect(await screen.findByText("Nothing has this name.")).toBeTruthy();
  await person.clear(search);
  await person.type(search, "cale");
  expect(screen.getAllByRole("option").map(({ textContent }) => textContent)).toEqual(["Calendars"]);
  await person.keyboard("{Enter}");
  expect(push).toHaveBeenCalledExactlyOnceWith("/calendars");
  expect(onClose).toHaveBeenCalledOnce();
});
