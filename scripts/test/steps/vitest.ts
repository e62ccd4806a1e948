/** Vitest's default configuration as a suite: counts, flaky tests, seconds of each file, and the tests that hang. */
import { rm } from "node:fs/promises";
import path from "node:path";
import { attempt, run } from "#scripts/lib/processes.ts";
import { FLAKY, LIMIT_VARIABLE, STILL_RUNNING, UNHANDLED } from "#scripts/test/running-tests.ts";
import type { Outcome, Print } from "#scripts/test/step.ts";
import { type FileOutcome, fileOutcomes, flakyTests, runOutcome } from "#scripts/test/vitest-report.ts";

/** Seconds after which the run is ended. It takes a few minutes. */
const LIMIT_S = 1500;
/** Seconds after the limit for Vitest to name the tests that run, and to end. */
const LAST_WORDS_S = 60;
/** More files with failures than this are no accident of timing, and are not run once more. */
const MOST_RERUN = 3;

/** One run of Vitest; `problem` when it did not end well, `hung`: the tests that ran at its limit. */
type Run = {
  files: FileOutcome[];
  flaky: string[];
  hung: string[];
  /** Errors that no test caught. */
  unhandled: string[];
  problem: string | undefined;
};

/**
 * Runs all tests, or those of `files` (parts of file names). Where few files have a failure, these run once more: a test's
 * own second try may find what the first one left behind.
 */
export async function runVitest(root: string, out: string, print: Print, files: readonly string[]): Promise<Outcome> {
  const first = await runOnce(root, path.join(out, "vitest.json"), print, files);
  const broken = first.files.filter(({ ok }) => !ok).map(({ file }) => file);
  const isAccident = broken.length <= MOST_RERUN && first.hung.length === 0 && first.unhandled.length === 0;
  if (broken.length === 0 || !isAccident) return outcomeOf(first);
  print(`Once more, alone: ${broken.join(", ")}`);
  const again = await runOnce(root, path.join(out, "vitest-again.json"), print, broken);
  // A file's name may be the end of another's.
  const rerun = again.files.filter(({ file }) => broken.includes(file));
  if (rerun.length < broken.length) return outcomeOf({ ...first, problem: again.problem ?? first.problem });
  return outcomeOf({
    ...again,
    files: [...first.files.filter(({ ok }) => ok), ...rerun],
    flaky: [...first.flaky, ...flakyTests(first.files, rerun)],
  });
}

async function runOnce(root: string, report: string, print: Print, files: readonly string[]): Promise<Run> {
  // None from before, which would be taken for this run's.
  await rm(report, { force: true });
  const flaky: string[] = [];
  const hung: string[] = [];
  const unhandled: string[] = [];
  const reporters = ["--reporter=default", "--reporter=./scripts/test/running-tests.ts", "--reporter=json"];
  const args = ["node_modules/vitest/vitest.mjs", "run", ...reporters, `--outputFile.json=${report}`, ...files];
  const problem = await attempt(() =>
    run(process.execPath, args, {
      cwd: root,
      env: { ...process.env, [LIMIT_VARIABLE]: String(LIMIT_S) },
      limit: LIMIT_S + LAST_WORDS_S,
      onLine: (line) => {
        print(line);
        if (line.startsWith(FLAKY)) flaky.push(line.slice(FLAKY.length));
        if (line.startsWith(STILL_RUNNING)) hung.push(line.slice(STILL_RUNNING.length));
        if (line.startsWith(UNHANDLED)) unhandled.push(line.slice(UNHANDLED.length));
      },
    }),
  );
  return { files: fileOutcomes(report), flaky, hung, unhandled, problem };
}

function outcomeOf({ files, flaky, hung, unhandled, problem }: Run): Outcome {
  return {
    ...runOutcome(files, { hung, problem, unhandled }),
    ...{ flaky, files },
    ...(hung.length > 0 ? { note: `hung: ${hung.join(", ")}` } : {}),
  };
}
