/** A step of a test run: what it needs, how much of the machine it takes, and what it found. */

export type Counts = { passed: number; failed: number };

/** How long one test file took, in seconds. */
export type FileTime = { file: string; seconds: number };

export type Outcome = Counts & {
  /** Tests that failed and passed when they were run once more. They count as passed, and the closing table names them. */
  flaky?: readonly string[];
  /** Names of failed tests, each with the first lines of its message. The closing table ends with them. */
  failures?: readonly string[];
  /** One line for the closing table, such as why a suite could not run. */
  note?: string;
  files?: readonly FileTime[];
};

export type Print = (line: string) => void;

export type Step = {
  name: string;
  /** `check` counts as one test; `build` counts only when it fails. */
  kind: "build" | "check" | "suite";
  /** Steps that must have ended well before. A name that is no step of this run is ignored. */
  after?: readonly string[];
  /** Cores that the step keeps busy; 0 for one that waits for the network. */
  cores: number;
  run: (print: Print) => Promise<Outcome | undefined>;
};

export type StepResult = Outcome & Pick<Step, "name" | "kind"> & { seconds: number };

/** The sum over several steps. */
export function sum(results: readonly Counts[]): Counts {
  return {
    passed: results.reduce((total, { passed }) => total + passed, 0),
    failed: results.reduce((total, { failed }) => total + failed, 0),
  };
}
