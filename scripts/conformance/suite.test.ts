import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { count, type Outcomes, suiteSchema } from "./suite.ts";

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

  it.each(readdirSync(SUITES, { withFileTypes: true }).filter((entry) => entry.isDirectory()))(
    "$name is well-formed and pins its packages",
    ({ name }) => {
      const suite = suiteSchema.parse(JSON.parse(readFileSync(path.join(SUITES, name, "suite.json"), "utf8")));
      for (const requirement of suite.requirements) expect(requirement).toContain("==");
      for (const pattern of suite.notApplicable) expect(() => new RegExp(pattern)).not.toThrow();
    },
  );
});
