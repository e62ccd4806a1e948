/** The steps of getting ready: shown in the terminal with elapsed time, and on the portal's first page. */
import { systemContext } from "#server/context.ts";
import type { Database } from "#server/db/client.ts";
import { write } from "#server/services/setup-step/write.ts";

type StepState = "waiting" | "running" | "done" | "failed";

/** Writes steps to the terminal at once, and to the table as soon as there is a database. */
export class Steps<Id extends string> {
  #titles: Record<Id, string>;
  #db: Database | undefined;
  #pending: Promise<unknown> = Promise.resolve();
  #lastMessageAt = Number.NEGATIVE_INFINITY;

  constructor(titles: Record<Id, string>) {
    this.#titles = titles;
  }

  /** From here on, steps are also rows; those in `done` were taken before there was a database. */
  async persistTo(db: Database, ...done: Id[]): Promise<void> {
    this.#db = db;
    for (const id of Object.keys(this.#titles) as Id[]) this.#write(id, done.includes(id) ? "done" : "waiting");
    await this.#pending;
  }

  /** Runs one step; its failure is shown with what to do, and rethrown. */
  async run<T>(id: Id, work: (onLine: (line: string) => void) => Promise<T>): Promise<T> {
    const started = performance.now();
    this.#say("…", this.#titles[id]);
    this.#write(id, "running");
    try {
      const result = await work((line) => this.#progress(id, line));
      this.#say("✓", `${this.#titles[id]}  ${elapsed(started)}`);
      this.#write(id, "done");
      return result;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.#say("✗", `${this.#titles[id]}  ${elapsed(started)}\n${message}`);
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
  #progress(id: Id, line: string): void {
    if (performance.now() - this.#lastMessageAt < 500) return;
    this.#lastMessageAt = performance.now();
    this.#write(id, "running", line.slice(0, 300));
  }

  #write(id: Id, state: StepState, message?: string): void {
    const db = this.#db;
    if (db === undefined) return;
    this.#pending = this.#pending.then(async () => {
      try {
        await write(systemContext(db), { id, title: this.#titles[id], state, message });
      } catch (error) {
        console.error(`  !  step ${id} could not be recorded: ${String(error)}`);
      }
    });
  }
}

function elapsed(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}
