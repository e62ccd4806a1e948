/** Runs steps side by side, as far as their order and the machine's cores allow. */
import { failureOf } from "#scripts/test/result.ts";
import type { Outcome, Print, Step, StepResult } from "#scripts/test/step.ts";
import { within } from "#server/within.ts";

type State = {
  /** In the order of their priority. */
  waiting: readonly Step[];
  running: readonly Step[];
  /** Names of steps that ended well. */
  succeeded: ReadonlySet<string>;
  /** Names of steps that failed or could not run. */
  failed: ReadonlySet<string>;
  cores: number;
};

/**
 * The steps to start now, and those that can never run because a step before them failed. A step that needs more cores
 * than the machine has runs alone.
 */
export function nextSteps({ waiting, running, succeeded, failed, cores }: State): { start: Step[]; skip: Step[] } {
  const known = new Set([...waiting, ...running].map(({ name }) => name));
  const isOpen = (name: string) => known.has(name) && !succeeded.has(name) && !failed.has(name);
  const skip = waiting.filter(({ after = [] }) => after.some((name) => failed.has(name)));
  const start: Step[] = [];
  let free = cores - running.reduce((total, step) => total + step.cores, 0);
  let isIdle = running.every((step) => step.cores === 0);
  for (const step of waiting) {
    const { after = [] } = step;
    if (skip.includes(step) || after.some(isOpen)) continue;
    if (step.cores > free && !(isIdle && step.cores > 0)) continue;
    start.push(step);
    free -= step.cores;
    if (step.cores > 0) isIdle = false;
  }
  return { start, skip };
}

/** Limit of a build, as for a download that stands still. Suites and checks have limits of their own. */
const BUILD_LIMIT_MS = 45 * 60_000;
/** Lines of the output of a command that failed, for the closing table. */
const LAST_LINES = 10;

/** Runs all steps; settles when the last has ended. A step that throws counts as one failure. */
export async function runSteps(
  steps: readonly Step[],
  { cores, print }: { cores: number; print: Print },
): Promise<StepResult[]> {
  const results: StepResult[] = [];
  const [succeeded, failed] = [new Set<string>(), new Set<string>()];
  let waiting = [...steps];
  const running = new Map<Step, Promise<void>>();
  const settle = (step: Step, outcome: Outcome, seconds: number) => {
    const { name, kind } = step;
    results.push({ name, kind, ...outcome, seconds });
    (outcome.failed > 0 ? failed : succeeded).add(name);
    const counts = kind === "suite" ? `  ${outcome.passed} passed, ${outcome.failed} failed` : "";
    print(`${outcome.failed > 0 ? "✗" : "✓"}  ${name}  ${seconds.toFixed(0)} s${counts}`);
    running.delete(step);
  };
  for (;;) {
    const { start, skip } = nextSteps({ waiting, running: [...running.keys()], succeeded, failed, cores });
    for (const step of skip) {
      const missing = step.after?.filter((name) => failed.has(name)).join(", ");
      settle(step, { passed: 0, failed: 1, note: `not run: ${missing} failed` }, 0);
    }
    waiting = waiting.filter((step) => !start.includes(step) && !skip.includes(step));
    for (const step of start) {
      print(`…  ${step.name}`);
      running.set(step, measured(step, print, settle));
    }
    if (skip.length > 0) continue;
    if (running.size === 0) break;
    await Promise.race(running.values());
  }
  for (const { name } of waiting) throw new Error(`${name} waits for itself: its order has a circle.`);
  return results;
}

async function measured(
  step: Step,
  print: Print,
  settle: (step: Step, outcome: Outcome, seconds: number) => void,
): Promise<void> {
  const started = Date.now();
  const seconds = () => (Date.now() - started) / 1000;
  try {
    const work = step.run((line) => print(`${step.name.padEnd(10)} │ ${line}`));
    const late = () => Promise.reject(new Error(`did not end within ${BUILD_LIMIT_MS / 60_000} min`));
    const outcome = await (step.kind === "build" ? within(BUILD_LIMIT_MS, work, late) : work);
    const passed = step.kind === "check" ? 1 : 0;
    settle(step, outcome ?? { passed, failed: 0 }, seconds());
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const [note = "", ...lines] = message.split("\n");
    for (const line of [note, ...lines]) print(`${step.name.padEnd(10)} │ ${line}`);
    // The last lines of a command's output say why it failed.
    const failures = lines.length > 0 ? [failureOf(note, lines.slice(-LAST_LINES).join("\n"))] : [];
    settle(step, { passed: 0, failed: 1, note, failures }, seconds());
  }
}
