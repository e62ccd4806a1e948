import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import {
  count,
  merged,
  type Outcomes,
  type Result,
  result,
  resultSchema,
  share,
  suiteSchema,
  withListing,
} from "./suite.ts";

const ROOT = path.resolve(import.meta.dirname, "..", "..");
const SUITES = path.join(ROOT, "native", "conformance", "suites");

const recordedOf = (name: string): Result =>
  resultSchema.parse(JSON.parse(readFileSync(path.join(SUITES, name, "result.json"), "utf8")));

describe("conformance suites", () => {
  const outcomes: Outcomes = [
    { test: "a", outcome: "passed", reason: "" },
    { test: "b", outcome: "failed", reason: "" },
    { test: "c", outcome: "skipped", reason: "requires compute capability 8.0" },
    { test: "d", outcome: "skipped", reason: "cupy is not installed" },
    { test: "e", outcome: "xfailed", reason: "" },
  ];

  it("hold at least sixty CUDA C++ programs for two targets each, and all passed", () => {
    const { counts } = recordedOf("cuda");
    expect(counts.collected).toBeGreaterThanOrEqual(120);
    expect(counts.passed).toBe(counts.collected);
  });

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

  it("keep the suite's own words for what does not apply", () => {
    const suite = { notApplicable: ["compute capability", "^Skipped$"], reasons: [] };
    const off: Outcomes = [{ test: "g", outcome: "skipped", reason: "Skipped" }];
    const { counts, notApplicable } = result("2026-01-02", [...outcomes, ...off], suite);
    expect(notApplicable).toEqual([
      { test: "c", reason: "requires compute capability 8.0" },
      { test: "e", reason: "expected to fail" },
      { test: "g", reason: "switched off without a reason" },
    ]);
    expect(counts.not_applicable).toBe(3);
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
      const recorded = recordedOf(name);
      const { collected, not_applicable, passed, failed, skipped } = recorded.counts;
      expect(not_applicable + passed + failed + skipped).toBe(collected);
      expect(recorded.notPassed).toHaveLength(failed + skipped);
      // Records from before the list was kept have none.
      expect([0, not_applicable]).toContain(recorded.notApplicable.length);
      if (suite.page === undefined) return;
      // A suite with a page lists there, with its reason, every test that did not pass and every one that does not apply.
      const page = readFileSync(path.join(ROOT, suite.page), "utf8");
      expect(recorded.notPassed.filter(({ reason }) => reason === undefined)).toEqual([]);
      expect(withListing(page, recorded)).toBe(page);
    },
  );

  it("numba-cuda's own tests: at least 95 % of those that apply passed when they were recorded", () => {
    expect(share(recordedOf("numba").counts)).toBeGreaterThanOrEqual(95);
  });

  // What each says is for its reader; that it says something is checked here.
  it("our twenty programs state their tolerance, in CUDA C++ and in Numba", () => {
    const cuda = path.join(ROOT, "native", "conformance", "cuda");
    const above = ["saxpy.cu", "matmul.cu", "reduction.cu", "histogram.cu"];
    const programs = [...above, ...readdirSync(path.join(cuda, "kernels")).map((file) => path.join("kernels", file))];
    expect(programs).toHaveLength(20);
    const silent = programs.filter(
      (program) => !/^(\/\/.*\n)*\/\/.*Tolerance: /.test(readFileSync(path.join(cuda, program), "utf8")),
    );
    expect(silent).toEqual([]);
    const numba = readFileSync(path.join(SUITES, "own", "test_own.py"), "utf8");
    const tests = numba.match(/^def test_\w+\(.*\):\n.*$/gm) ?? [];
    expect(tests.length).toBeGreaterThanOrEqual(20);
    expect(tests.filter((test) => !test.includes('\n    """'))).toEqual([]);
    expect(numba.match(/^# \d+\. /gm)).toHaveLength(20);
  });
});
