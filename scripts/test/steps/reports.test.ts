/** What each suite reads from the reports of its runner. */
import { expect, it } from "vitest";
import { closingLine, closingTable, failureOf, noReport, withProblem } from "#scripts/test/result.ts";
import type { StepResult } from "#scripts/test/step.ts";
import { journeyOutcome } from "#scripts/test/steps/journeys.ts";
import { junitOutcome } from "#scripts/test/steps/pytest.ts";
import { testProgram } from "#scripts/test/steps/rust.ts";

it("finds test programs in cargo's messages, and nothing else", () => {
  const artifact = {
    reason: "compiler-artifact",
    manifest_path: "/repo/native/gpud/Cargo.toml",
    target: { name: "all", kind: ["test"] },
    profile: { test: true },
    executable: "/repo/native/target/release/deps/all-1",
  };
  expect(testProgram(JSON.stringify(artifact))).toEqual({
    name: "gpud/all",
    executable: "/repo/native/target/release/deps/all-1",
    folder: "/repo/native/gpud",
  });
  const unit = { ...artifact, target: { name: "sluice_gpud", kind: ["lib"] } };
  expect(testProgram(JSON.stringify(unit))?.name).toBe("gpud/unit tests");
  expect(testProgram(JSON.stringify({ ...artifact, profile: { test: false } }))).toBeUndefined();
  expect(testProgram(JSON.stringify({ reason: "build-finished", success: true }))).toBeUndefined();
  expect(testProgram("warning: unused variable")).toBeUndefined();
});

it("reads pytest's counts and the seconds of each file", () => {
  const xml = `<testsuites><testsuite name="pytest" errors="1" failures="1" skipped="2" tests="9" time="3.5">
    <testcase classname="native.python.tests.test_hook" name="a" time="1.5" />
    <testcase classname="native.python.tests.test_hook.TestClass" name="b[&quot;x&quot;]" time="0.25"><failure
      message="assert 1 &lt; 0&#10;a second line">trace</failure></testcase>
    <testcase classname="tests.test_text" name="c" time="1" /></testsuite></testsuites>`;
  expect(junitOutcome(xml)).toEqual({
    passed: 5,
    failed: 2,
    failures: ['test_hook.py: b["x"]\nassert 1 < 0\na second line'],
    files: [
      { file: "test_hook.py", seconds: 1.75 },
      { file: "test_text.py", seconds: 1 },
    ],
  });
});

it("counts a journey that passed at its second try as passed, and names it", () => {
  const spec = (title: string, status: string, ...durations: number[]) => ({
    ...{ title, file: "1-journey.e2e.ts" },
    tests: [{ status, results: durations.map((duration) => ({ duration, error: { message: `${title}: why` } })) }],
  });
  const report = {
    suites: [{ specs: [spec("signs in", "expected", 500)], suites: [{ specs: [spec("opens", "flaky", 900, 600)] }] }],
    specs: [spec("closes", "unexpected", 1000, 1000), spec("other", "skipped")],
  };
  expect(journeyOutcome(report)).toEqual({
    passed: 2,
    failed: 1,
    flaky: ["1-journey.e2e.ts > opens"],
    failures: ["1-journey.e2e.ts > closes\ncloses: why"],
    files: [{ file: "e2e/1-journey.e2e.ts", seconds: 4 }],
  });
});

it("sums up a run, and names flaky tests", () => {
  const result = (name: string, more: Partial<StepResult>): StepResult => ({
    ...{ name, kind: "suite", passed: 0, failed: 0, seconds: 1 },
    ...more,
  });
  const results = [
    result("portal", { kind: "build" }),
    result("types", { kind: "check", passed: 1 }),
    result("rust", { passed: 10, failed: 1, flaky: ["gpud/all leases::ends"], note: "one program ended badly" }),
  ];
  expect(closingLine(results)).toBe("11 passed, 1 failed");
  const table = closingTable(results);
  expect(table).toContain("portal");
  expect(table).toContain("one program ended badly");
  expect(table).toContain("Flaky tests (passed only at the second try):\n  rust: gpud/all leases::ends");
  expect(closingTable(results.slice(0, 2))).toContain("Flaky tests: none");
});

it("ends a run with what failed and why, without colors and in few lines", () => {
  const failures = [
    failureOf("a.test.ts: adds", "\u001b[31mexpected 1\u001b[39m\n\nto be 2"),
    failureOf("b.test.ts", many(40)),
  ];
  const table = closingTable([{ name: "vitest", kind: "suite", passed: 0, failed: 2, seconds: 1, failures }]);
  const [, told = ""] = table.split("Failed:\n");
  expect(told).toMatch(
    /^ {2}vitest: a\.test\.ts: adds\n {4}expected 1\n {4}to be 2\n {2}vitest: b\.test\.ts\n {4}line 0\n/,
  );
  expect(told.split("\n").length).toBeLessThan(20);
});

it("says how many failures it leaves out", () => {
  const failures = Array.from({ length: 50 }, (_, index) => `test ${index}`);
  const table = closingTable([{ name: "rust", kind: "suite", passed: 0, failed: 50, seconds: 1, failures }]);
  expect(table).toContain("and 30 more");
  expect(table).not.toContain("test 20");
});

it("names no failure where nothing failed", () => {
  expect(closingTable([{ name: "rust", kind: "suite", passed: 5, failed: 0, seconds: 1, failures: [] }])).not.toContain(
    "Failed",
  );
});

it("takes a runner's failure outside of all tests as one, and one beside a failed test as no second", () => {
  const outcome = { passed: 3, failed: 0, failures: [] };
  expect(withProblem(outcome, "node ended with 1:\nan error")).toEqual({
    ...{ passed: 3, failed: 1 },
    failures: ["outside of all tests\nnode ended with 1:\nan error"],
  });
  expect(withProblem({ ...outcome, failed: 1 }, "node ended with 1")).toMatchObject({ failed: 1 });
  expect(withProblem(outcome, undefined)).toBe(outcome);
  expect(noReport("node ended with 1:\nlast words")).toMatchObject({ failed: 1, note: "node ended with 1:" });
});

const many = (count: number) => Array.from({ length: count }, (_, index) => `line ${index}`).join("\n");
