/** Where test runs leave their results, and how a run is summed up. */
import { type StepResult, sum } from "#scripts/test/step.ts";

/** Counts, files, flaky tests of the last `npm run test:cluster`. */
export const CLUSTER_RESULT_FILE = ".sluice/test/cluster-result.json";

/** `N passed, N failed`: the last line of a run. */
export function closingLine(results: readonly StepResult[]): string {
  const { passed, failed } = sum(results);
  return `${passed} passed, ${failed} failed`;
}

/** A line for each step that failed, was slow or is a suite, and one for each flaky test. */
export function closingTable(results: readonly StepResult[]): string {
  const rows = results.map(({ name, kind, passed, failed, seconds, note }) => {
    const counts =
      kind === "build" && failed === 0
        ? "built".padStart(25)
        : `${String(passed).padStart(5)} passed ${String(failed).padStart(5)} failed`;
    return `${name.padEnd(30)}${counts}  ${seconds.toFixed(0).padStart(5)} s${note === undefined ? "" : `  ${note}`}`;
  });
  const flaky = results.flatMap(({ name, flaky = [] }) => flaky.map((test) => `  ${name}: ${test}`));
  const heading = flaky.length === 0 ? "Flaky tests: none" : "Flaky tests (passed only at the second try):";
  return [...rows, heading, ...flaky].join("\n");
}
