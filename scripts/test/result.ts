/** One runner's outcome; the test command adds them up for its closing line. */
export type Result = {
  name: string;
  passed: number;
  failed: number;
  seconds: number;
  /** Tests that failed and passed when they were run once more; counted as passed, and named. */
  flaky?: readonly string[];
  note?: string;
};

/** Where `npm test` leaves its sums for `.ci/run`, which adds its own checks. */
export const RESULT_FILE = ".sluice/test/result.json";
/** The same of `npm run test:cluster`. */
export const CLUSTER_RESULT_FILE = ".sluice/test/cluster-result.json";

/** What all runners passed and failed. */
export function sum(results: readonly Result[]): { passed: number; failed: number } {
  return {
    passed: results.reduce((total, result) => total + result.passed, 0),
    failed: results.reduce((total, result) => total + result.failed, 0),
  };
}

/** The closing line of `npm test`. */
export function closingLine(results: readonly Result[]): string {
  const { passed, failed } = sum(results);
  return `${passed} passed, ${failed} failed`;
}

/** A table of the runners, their counts, and their time beside their budget. */
export function table(results: readonly Result[], budgets: Readonly<Record<string, number>>): string {
  const rows = results.map((result) => {
    const budget = budgets[result.name];
    const over = budget !== undefined && result.seconds > budget ? "  over budget" : "";
    const time = `${result.seconds.toFixed(0)} s${budget === undefined ? "" : ` of ${budget} s`}`;
    const note = result.note === undefined ? "" : `  ${result.note}`;
    const counts = `${String(result.passed).padStart(5)} passed ${String(result.failed).padStart(4)} failed`;
    return `${result.name.padEnd(14)}${counts}  ${time}${over}${note}`;
  });
  const flaky = results.flatMap((result) => (result.flaky ?? []).map((test) => `flaky: ${result.name}: ${test}`));
  return [...rows, ...flaky].join("\n");
}
