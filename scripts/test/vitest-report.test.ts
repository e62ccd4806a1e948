import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { countsOf, fileOutcomes, flakyTests } from "./vitest-report.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-report-"));
});
afterEach(async () => await rm(folder, { recursive: true }));

type Tests = Record<string, "passed" | "failed" | "skipped">;

/** A report as Vitest writes it. */
async function report(files: Record<string, { ms: number; tests: Tests; status?: "passed" | "failed" }>) {
  const file = path.join(folder, "report.json");
  const testResults = Object.entries(files).map(([name, { ms, tests, status }]) => ({
    ...{ name: path.resolve(name), startTime: 1_000.5, endTime: 1_000.5 + ms },
    status: status ?? (Object.values(tests).includes("failed") ? "failed" : "passed"),
    message: status === "failed" ? "why the file failed" : "",
    assertionResults: Object.entries(tests).map(([fullName, state]) => ({
      ...{ fullName, status: state },
      failureMessages: state === "failed" ? ["at the first try", `why ${fullName} failed`] : [],
    })),
  }));
  await writeFile(file, JSON.stringify({ testResults }));
  return fileOutcomes(file);
}

it("lists files with their seconds, the slowest first", async () => {
  const found = await report({
    "a.ts": { ms: 1_240, tests: { one: "passed", two: "skipped" } },
    "b.ts": { ms: 65_000, tests: { one: "failed" } },
  });
  expect(found).toEqual([
    { file: "b.ts", seconds: 65, passed: 0, ok: false, failed: ["one"], failures: ["b.ts: one\nwhy one failed"] },
    { file: "a.ts", seconds: 1.2, passed: 1, ok: true, failed: [], failures: [] },
  ]);
});

it("names a test as flaky whose file passes the second time, and a file that failed outside of its tests", async () => {
  const first = await report({
    "passes.ts": { ms: 1, tests: { one: "passed" } },
    "flaky.ts": { ms: 1, tests: { one: "passed", two: "failed" } },
    "hooks.ts": { ms: 1, tests: {}, status: "failed" },
    "broken.ts": { ms: 1, tests: { one: "failed" } },
  });
  const again = await report({
    "flaky.ts": { ms: 1, tests: { one: "passed", two: "passed" } },
    "hooks.ts": { ms: 1, tests: { one: "passed" } },
    "broken.ts": { ms: 1, tests: { one: "failed" } },
  });
  expect(flakyTests(first, again)).toEqual(["flaky.ts: two", "hooks.ts"]);
});

it("counts a file that failed outside of its tests as one failure", async () => {
  const found = await report({
    "hooks.ts": { ms: 1, tests: { one: "passed", two: "skipped" }, status: "failed" },
    "broken.ts": { ms: 1, tests: { one: "failed", two: "failed", three: "passed" } },
  });
  expect(countsOf(found)).toEqual({ passed: 2, failed: 3 });
  expect(found.flatMap(({ failures }) => failures)).toContain("hooks.ts\nwhy the file failed");
});

it("has no files without a report", () => {
  expect(fileOutcomes(path.join(folder, "none.json"))).toEqual([]);
});
