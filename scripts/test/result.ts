/** Where test runs leave their results, and how a run is summed up. */
import { stripVTControlCharacters } from "node:util";
import { type Outcome, type StepResult, sum } from "#scripts/test/step.ts";

/** Counts, files, flaky tests of the last `npm run test:cluster`. */
export const CLUSTER_RESULT_FILE = ".sluice/test/cluster-result.json";

/** `N passed, N failed`: the last line of a run. */
export function closingLine(results: readonly StepResult[]): string {
  const { passed, failed } = sum(results);
  return `${passed} passed, ${failed} failed`;
}

/** A line for each step and for each flaky test, then what failed and why. */
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
  const failures = results.flatMap(({ name, failures = [] }) =>
    failures.map((one) => `  ${name}: ${one.trim().replaceAll("\n", "\n    ")}`),
  );
  const shown = failures.slice(0, MOST_FAILURES);
  const more =
    failures.length > shown.length ? [`  and ${failures.length - shown.length} more; the lines above have them`] : [];
  return [...rows, heading, ...flaky, ...(failures.length > 0 ? ["Failed:"] : []), ...shown, ...more].join("\n");
}

/** Failures that the closing table shows, and lines of each. */
const MOST_FAILURES = 20;
const MOST_LINES = 12;

/** A failure for the closing table: what failed, and the first lines of why. */
export function failureOf(what: string, why = ""): string {
  const lines = stripVTControlCharacters(why)
    .split("\n")
    .filter((line) => line.trim() !== "");
  return [what, ...lines.slice(0, MOST_LINES)].join("\n");
}

/** The outcome of a suite whose runner left no report. */
export function noReport(problem: string | undefined): Outcome {
  const note = problem?.split("\n", 1)[0] ?? "no report";
  return { passed: 0, failed: 1, note, failures: [failureOf("no report", problem)] };
}

/** An outcome of which the runner also says that it failed: outside of all tests where no test did. */
export function withProblem(outcome: Outcome, problem: string | undefined): Outcome {
  if (problem === undefined || outcome.failed > 0) return outcome;
  return { ...outcome, failed: 1, failures: [failureOf("outside of all tests", problem)] };
}
