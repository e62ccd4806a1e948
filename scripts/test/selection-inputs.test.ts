/** A changed file selects each suite whose tests name it. */
import { execFile } from "node:child_process";
import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { JOURNEYS_SMOKE, type SuiteName, VITEST } from "#scripts/test/plan.ts";
import { selectSuites } from "#scripts/test/selection.ts";

const TESTS: Partial<Record<SuiteName, string[]>> = {
  playwright: ["e2e/**/*.ts"],
  cluster: ["{scripts,server}/**/*.cluster.ts", "scripts/cluster/*.ts"],
  vitest: ["{app,components,server,scripts,bench,e2e}/**/*.test.{ts,tsx}"],
};

/** Files of the repository that a source names in quotes: imports and paths. */
function namedFiles(file: string): string[] {
  const words = [...readFileSync(file, "utf8").matchAll(/["']([\w./#@()[\]-]+)["']/g)].map(([, word = ""]) => word);
  const folder = path.dirname(file);
  return words
    .filter((word) => word.includes("/") || word.startsWith("."))
    .map((word) => (word.startsWith(".") ? path.join(folder, word) : word.replace(/^#/, "")))
    .filter((name) => !name.startsWith("..") && !path.isAbsolute(name) && existsSync(name) && statSync(name).isFile());
}

it.each(Object.entries(TESTS))("of %s", (suite, patterns) => {
  const isExample = (file: string) => /node_modules|\.sluice|scripts\/test\/selection/.test(file);
  const sources = globSync(patterns).filter((file) => !isExample(file));
  const named = new Set(sources.flatMap(namedFiles));
  expect(named.size).toBeGreaterThan(3);
  const missed = [...named].filter((file) => selectSuites([file]).get(suite as SuiteName) !== "all");
  expect(missed).toEqual([]);
});

it.each(Object.entries(VITEST))("each name of the %s is of a test", (_, words) => {
  const files = globSync("{app,components,server,scripts}/**/*.test.{ts,tsx}");
  expect(words.filter((word) => !files.some((file) => file.includes(word)))).toEqual([]);
});

it("the smoke of Playwright names a journey", async () => {
  const args = ["node_modules/@playwright/test/cli.js", "test", "--list", ...JOURNEYS_SMOKE];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(stdout).toContain("[journeys] › 1-journey.e2e.ts");
}, 60_000);
