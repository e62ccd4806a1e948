/** What each suite reads from the reports of its runner. */
import { expect, it } from "vitest";
import { closingLine, closingTable } from "#scripts/test/result.ts";
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
    <testcase classname="native.python.tests.test_hook.TestClass" name="b" time="0.25"><failure/></testcase>
    <testcase classname="tests.test_text" name="c" time="1" /></testsuite></testsuites>`;
  expect(junitOutcome(xml)).toEqual({
    passed: 5,
    failed: 2,
    files: [
      { file: "test_hook.py", seconds: 1.75 },
      { file: "test_text.py", seconds: 1 },
    ],
  });
});

it("counts a journey that passed at its second try as passed, and names it", () => {
  const spec = (title: string, status: string, ...durations: number[]) => ({
    ...{ title, file: "1-journey.e2e.ts" },
    tests: [{ status, results: durations.map((duration) => ({ duration })) }],
  });
  const report = {
    suites: [{ specs: [spec("signs in", "expected", 500)], suites: [{ specs: [spec("opens", "flaky", 900, 600)] }] }],
    specs: [spec("closes", "unexpected", 1000, 1000), spec("other", "skipped")],
  };
  expect(journeyOutcome(report)).toEqual({
    passed: 2,
    failed: 1,
    flaky: ["1-journey.e2e.ts > opens"],
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
