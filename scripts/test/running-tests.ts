/**
 * A Vitest reporter that ends a run which takes too long and names the tests that were running: a test's own timeout ends
 * no worker that hangs. At the end it names the tests that passed only at their second try.
 */
import path from "node:path";
import type { SerializedError } from "vitest";
import type { Reporter, TestCase, TestModule, Vitest } from "vitest/node";

/** Seconds that the whole run may take; without the variable there is no limit. */
export const LIMIT_VARIABLE = "SLUICE_TEST_LIMIT_S";
/** Begins the line for each test that was running when the limit was reached. */
export const STILL_RUNNING = "Still running at the limit: ";
/** Begins the line for each error that no test caught: in a worker, a timer or a promise that nothing waited for. */
export const UNHANDLED = "Error outside of all tests: ";
/** Begins the line for each test that passed only at its second try. */
export const FLAKY = "Passed at the second try: ";

/** Time for Vitest to end its workers and write its report. */
const REPORT_MS = 30_000;

export default class RunningTests implements Reporter {
  /** By the ids of tests; a file stands for its hooks. */
  readonly #running = new Map<string, { name: string; since: number; module: string }>();
  readonly #flaky: string[] = [];
  #timer: NodeJS.Timeout | undefined;

  onInit(vitest: Vitest): void {
    const seconds = Number(process.env[LIMIT_VARIABLE] ?? 0);
    if (seconds > 0) this.#timer = setTimeout(() => void this.#end(vitest, seconds), seconds * 1000);
  }

  onTestModuleStart(module: TestModule): void {
    this.#begin(module.id, module, "before, after or between its tests");
  }
  onTestModuleEnd(module: TestModule): void {
    this.#running.delete(module.id);
  }
  onTestCaseReady(test: TestCase): void {
    this.#begin(test.id, test.module, test.fullName);
  }
  onTestCaseResult(test: TestCase): void {
    this.#running.delete(test.id);
    if (test.diagnostic()?.flaky === true) this.#flaky.push(nameOf(test.module, test.fullName));
  }
  onTestRunEnd(_: readonly TestModule[], errors: readonly SerializedError[]): void {
    clearTimeout(this.#timer);
    for (const { message } of errors) console.log(`${UNHANDLED}${message.split("\n", 1)[0]}`);
    for (const name of this.#flaky) console.log(`${FLAKY}${name}`);
  }

  #begin(id: string, module: TestModule, name: string): void {
    this.#running.set(id, { name: nameOf(module, name), since: Date.now(), module: module.id });
  }

  async #end(vitest: Vitest, limit: number): Promise<void> {
    console.error(`The tests did not end within ${limit} s.`);
    const all = [...this.#running];
    const inTests = all.filter(([id, { module }]) =>
      id === module ? !all.some(([other, one]) => other !== id && one.module === id) : true,
    );
    for (const [, { name, since }] of inTests)
      console.error(`${STILL_RUNNING}${name} (${((Date.now() - since) / 1000).toFixed(0)} s)`);
    process.exitCode = 1;
    setTimeout(() => process.exit(1), REPORT_MS).unref();
    await vitest.cancelCurrentRun("test-failure");
  }
}

function nameOf(module: TestModule, test: string): string {
  return `${path.relative(process.cwd(), module.moduleId)}: ${test}`;
}
