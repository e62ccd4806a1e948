import { expect, it } from "vitest";
import { destinationsOf, found, stillFound } from "./destinations.ts";
import { treeFor } from "./tree.ts";

const all = (isAdmin: boolean) =>
  destinationsOf(treeFor({ isAdmin, teams: [{ name: "vision & nlp", role: "member" }] }), [{ name: "vision & nlp" }]);
const labels = (isAdmin: boolean, search: string) => found(all(isAdmin), search).map(({ label }) => label);

it("finds pages by any words of theirs, those that begin so first", () => {
  expect(labels(true, "set")).toEqual(["Settings", "Datasets"]);
  expect(labels(true, "GOVERN peo")).toEqual(["People"]);
  expect(labels(true, "nothing of this kind")).toEqual([]);
});

it("offers only what the person's tree has, and teams by their address", () => {
  expect(labels(false, "pool")).toEqual([]);
  expect(labels(true, "pool")).toEqual(["Pool"]);
  expect(found(all(false), "vision")).toMatchObject([{ href: "/teams/vision%20%26%20nlp" }]);
  expect(labels(false, "")).toHaveLength(all(false).length);
});

it("keeps of what the server found for other words only what has the new ones, too", () => {
  const place = (label: string) => ({ href: `/workspaces/${label}`, label, group: "Workspaces" });
  const answer = { search: "pytorch", list: [place("train"), place("trade")] };
  expect(stillFound(answer, "pytorch")).toHaveLength(2);
  expect(stillFound(answer, "trai").map(({ label }) => label)).toEqual(["train"]);
  expect(stillFound(answer, "gone")).toEqual([]);
});
