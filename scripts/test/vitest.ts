/** Runs Vitest, and counts what its report tells. */
import { existsSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { z } from "zod";

const reportSchema = z.object({
  numPassedTests: z.int(),
  numFailedTests: z.int(),
  numFailedTestSuites: z.int(),
  testResults: z.array(
    z.object({ name: z.string(), status: z.string(), assertionResults: z.array(z.object({ status: z.string() })) }),
  ),
});

/** The words after Node's: `args`, and a report into this file, where none is left from before. */
export function vitestWords(report: string, ...args: string[]): string[] {
  rmSync(report, { force: true });
  return ["node_modules/vitest/vitest.mjs", "run", ...args, "--reporter=json", `--outputFile.json=${report}`];
}

/** Undefined when there is no report. A run that failed without a failed test failed in its files. */
export function vitestCounts(report: string, runFailed: boolean): { passed: number; failed: number } | undefined {
  if (!existsSync(report)) return undefined;
  const counts = reportSchema.parse(JSON.parse(readFileSync(report, "utf8")));
  const broken = counts.numFailedTests === 0 && runFailed ? Math.max(1, counts.numFailedTestSuites) : 0;
  return { passed: counts.numPassedTests, failed: counts.numFailedTests + broken };
}

/** The files in which something failed, and how many of their tests passed. */
export function vitestFailures(report: string): { files: string[]; passed: number } {
  if (!existsSync(report)) return { files: [], passed: 0 };
  const { testResults } = reportSchema.parse(JSON.parse(readFileSync(report, "utf8")));
  const failed = testResults.filter(({ status }) => status === "failed");
  const passed = failed.flatMap(({ assertionResults }) => assertionResults.filter(({ status }) => status === "passed"));
  return { files: failed.map(({ name }) => path.relative(process.cwd(), name)), passed: passed.length };
}
