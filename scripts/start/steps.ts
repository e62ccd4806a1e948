/** The steps of getting ready: shown in the terminal with elapsed time, and on the portal's first page. */
import { systemContext } from "#server/context.ts";
import type { Database } from "#server/db/client.ts";
import { write } from "#server/services/setup-step/write.ts";

export const STEPS = {
  database: "Database",
  portal: "Portal",
  native: "GPU server and client (Rust build)",
  packages: "Python packages",
  environment: "Environment CUDA Python",
  gpud: "Software GPU",
} as const;
export type StepId = keyof typeof STEPS;
type StepState = "waiting" | "running" | "done" | "failed";

/** Writes steps to the terminal at once, and to the table as soon as there is a database. */
export class Steps {
  #db: Database | undefined;
  #pending: Promise<unknown> = Promise.resolve();
  #lastMessageAt = 0;

  /** From here on, steps are also rows; those in `done` were taken before there was a database. */
  async persistTo(db: Database, ...done: StepId[]): Promise<void> {
    this.#db = db;
    for (const id of Object.keys(STEPS) as StepId[]) this.#write(id, done.includes(id) ? "done" : "waiting");
    await this.#pending;
  }

  /** Runs one step; its failure is shown with what to do, and rethrown. */
  async run<T>(id: StepId, work: (onLine: (line: string) => void) => Promise<T>): Promise<T> {
    const started = Date.now();
    this.#say("…", STEPS[id]);
    this.#write(id, "running");
    try {
      const result = await work((line) => this.#progress(id, line));
      this.#say("✓", `${STEPS[id]}  ${elapsed(started)}`);
      this.#write(id, "done");
      return result;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.#say("✗", `${STEPS[id]}  ${elapsed(started)}\n${message}`);
      this.#write(id, "failed", message.slice(-2000));
      throw error;
    } finally {
      await this.#pending;
    }
  }

  #say(mark: string, text: string): void {
    console.log(`  ${mark}  ${text}`);
  }

  /** At most two lines a second reach the table. */
  #progress(id: StepId, line: string): void {
    if (Date.now() - this.#lastMessageAt < 500) return;
    this.#lastMessageAt = Date.now();
    this.#write(id, "running", line.slice(0, 300));
  }

  #write(id: StepId, state: StepState, message?: string): void {
    const db = this.#db;
    if (db === undefined) return;
    this.#pending = this.#pending.then(async () => {
      try {
        await write(systemContext(db), { id, title: STEPS[id], state, message });
      } catch (error) {
        console.error(`  !  step ${id} could not be recorded: ${String(error)}`);
      }
    });
  }
}

function elapsed(since: number): string {
  return `${((Date.now() - since) / 1000).toFixed(1)} s`;
}
