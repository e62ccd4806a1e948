/** What Vitest's report tells about each file and each test of the cluster tests. */
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { z } from "zod";
import { failureOf } from "#scripts/test/result.ts";

const reportSchema = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      startTime: z.number(),
      endTime: z.number().optional(),
      /** Why the file failed outside of its tests. */
      message: z.string().default(""),
      assertionResults: z.array(
        z.object({ fullName: z.string(), status: z.string(), failureMessages: z.array(z.string()).default([]) }),
      ),
    }),
  ),
});

/**
 * A file of the run; `failed`: the full names of its failed tests, or none where the file failed outside of a test;
 * `failures`: what failed and why, for the closing table.
 */
export type FileOutcome = {
  file: string;
  seconds: number;
  passed: number;
  ok: boolean;
  failed: string[];
  failures: string[];
};

/** Every file of a report, the slowest first; none without a report. */
export function fileOutcomes(report: string): FileOutcome[] {
  if (!existsSync(report)) return [];
  const { testResults } = reportSchema.parse(JSON.parse(readFileSync(report, "utf8")));
  const outcomes = testResults.map(({ name, status, startTime, endTime = startTime, message, assertionResults }) => {
    const namesOf = (wanted: string) =>
      assertionResults.flatMap((one) => (one.status === wanted ? [one.fullName] : []));
    const seconds = Math.round((endTime - startTime) / 100) / 10;
    const file = path.relative(process.cwd(), name);
    const tests = assertionResults.flatMap(({ fullName, status, failureMessages }) =>
      status === "failed" ? [failureOf(`${file}: ${fullName}`, failureMessages.at(-1))] : [],
    );
    const ok = status !== "failed";
    const failures = ok || tests.length > 0 ? tests : [failureOf(file, message)];
    return { file, seconds, passed: namesOf("passed").length, ok, failed: namesOf("failed"), failures };
  });
  return outcomes.sort((a, b) => b.seconds - a.seconds);
}

/** A file that failed outside of its tests counts as one failure. */
export function countsOf(outcomes: readonly FileOutcome[]): { passed: number; failed: number } {
  const sum = (count: (one: FileOutcome) => number) => outcomes.reduce((total, one) => total + count(one), 0);
  return {
    passed: sum(({ passed }) => passed),
    failed: sum(({ ok, failed }) => (ok ? 0 : Math.max(1, failed.length))),
  };
}

/** `problem`: why the run did not end well; `hung`: the tests that ran at its limit; `unhandled`: errors that no test caught. */
type End = { problem: string | undefined; hung: readonly string[]; unhandled?: readonly string[] };

/**
 * Counts and failures of a run. A run that fails without a failed test failed outside of all files, and one that hangs may
 * name no test.
 */
export function runOutcome(
  files: readonly FileOutcome[],
  { problem, hung, unhandled = [] }: End,
): { passed: number; failed: number; failures: string[] } {
  const counts = countsOf(files);
  const { passed } = counts;
  const failed = counts.failed + unhandled.length;
  const least = problem === undefined ? 0 : Math.max(1, hung.length);
  const failures = [
    ...files.flatMap((one) => one.failures),
    ...unhandled.map((error) => failureOf("outside of all tests", error)),
  ];
  if (failures.length < least) failures.push(failureOf("outside of all tests", problem));
  return { passed, failed: Math.max(failed, least), failures };
}

/** `file: test` of everything that failed in `first` and nothing of whose file failed in `again`. */
export function flakyTests(first: readonly FileOutcome[], again: readonly FileOutcome[]): string[] {
  const passed = new Set(again.flatMap(({ file, ok }) => (ok ? [file] : [])));
  return first
    .filter(({ file, ok }) => !ok && passed.has(file))
    .flatMap(({ file, failed }) => (failed.length === 0 ? [file] : failed.map((name) => `${file}: ${name}`)));
}
