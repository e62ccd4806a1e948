import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { count, merged, type Outcomes, result, resultSchema, suiteSchema, withListing } from "./suite.ts";

const SUITES = path.resolve(import.meta.dirname, "..", "..", "native", "conformance", "suites");

describe("conformance suites", () => {
  const outcomes: Outcomes = [
    { test: "a", outcome: "passed", reason: "" },
    { test: "b", outcome: "failed", reason: "" },
    { test: "c", outcome: "skipped", reason: "requires compute capability 8.0" },
    { test: "d", outcome: "skipped", reason: "cupy is not installed" },
    { test: "e", outcome: "xfailed", reason: "" },
  ];

  it("count as not applicable only what the card itself excludes", () => {
    expect(count(outcomes, ["compute capability"])).toEqual({
      collected: 5,
      not_applicable: 2,
      passed: 1,
      failed: 1,
      skipped: 1,
    });
  });

  it("name the reason of what did not pass, from what the test said", () => {
    const suite = { notApplicable: ["compute capability"], reasons: [{ pattern: "not installed", reason: "no CuPy" }] };
    expect(result("2026-01-02", outcomes, suite).notPassed).toEqual([
      { test: "b", outcome: "failed" },
      { test: "d", outcome: "skipped", reason: "no CuPy" },
    ]);
  });

  it("run again what failed: the newer outcome counts", () => {
    const again: Outcomes = [{ test: "b", outcome: "passed", reason: "" }];
    expect(merged(outcomes, again).map(({ outcome }) => outcome)).toEqual([
      ...["passed", "passed", "skipped", "skipped", "xfailed"],
    ]);
  });

  it("run in parts: each part adds what it ran", () => {
    const part: Outcomes = [{ test: "f", outcome: "passed", reason: "" }];
    expect(merged(outcomes, part)).toEqual([...outcomes, ...part]);
  });

  it.each(readdirSync(SUITES, { withFileTypes: true }).filter((entry) => entry.isDirectory()))(
    "$name is well-formed and pins its packages",
    ({ name }) => {
      const suite = suiteSchema.parse(JSON.parse(readFileSync(path.join(SUITES, name, "suite.json"), "utf8")));
      for (const requirement of suite.requirements) expect(requirement).toContain("==");
      for (const pattern of suite.notApplicable) expect(() => new RegExp(pattern)).not.toThrow();
      if (suite.page === undefined) return;
      // A suite with a page lists there, with its reason, every test that did not pass.
      const recorded = resultSchema.parse(JSON.parse(readFileSync(path.join(SUITES, name, "result.json"), "utf8")));
      const page = readFileSync(path.resolve(import.meta.dirname, "..", "..", suite.page), "utf8");
      expect(recorded.notPassed.filter(({ reason }) => reason === undefined)).toEqual([]);
      expect(withListing(page, recorded)).toBe(page);
    },
  );
});
