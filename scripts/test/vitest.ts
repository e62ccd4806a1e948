/** Runs Vitest, and counts what its report tells. */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { z } from "zod";

const reportSchema = z.object({ numPassedTests: z.int(), numFailedTests: z.int(), numFailedTestSuites: z.int() });

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
