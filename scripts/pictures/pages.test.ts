import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { expect, it } from "vitest";
import { FOLDER, fileOf, index, PAGES, routes, THEMES, WINDOWS } from "./pages.ts";

it("lists every page of the portal", () => {
  expect(Object.keys(PAGES).sort()).toEqual(routes());
});

it("has a picture of every page in every window and theme, and no other: else run npm run pictures", async () => {
  const wanted = Object.keys(PAGES).flatMap((route) =>
    WINDOWS.flatMap((window) => THEMES.map((theme) => fileOf(route, window, theme))),
  );
  expect((await readdir(FOLDER)).sort()).toEqual([...wanted, "README.md"].sort());
});

it("has an index that shows them", async () => {
  expect(await readFile(path.join(FOLDER, "README.md"), "utf8")).toBe(index());
});
