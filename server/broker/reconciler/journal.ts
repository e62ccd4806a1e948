/** Steps and log lines of a workspace's life, written as they happen so that its page shows them live. */
import type { Database } from "#server/db/client.ts";
import { workspaceEvents } from "#server/db/schema/index.ts";
import type { LaunchReport } from "#server/launchers/launcher.ts";
import { notify } from "#server/live.ts";
import type { Logger } from "#server/log.ts";

export type Step = "environment" | "sandbox" | "pod" | "jupyter" | "kernel" | "stop" | "remove";
type Kind = (typeof workspaceEvents.$inferInsert)["kind"];

/** Writes one workspace's events in order, the lines of a moment together; a lost line never fails a start. */
export class Journal implements LaunchReport {
  readonly #db: Database;
  readonly #log: Logger;
  readonly #of: { workspaceId: string; generation: number };
  #waiting: { at: Date; kind: Kind; step: Step; message: string }[] = [];
  #writing: Promise<void> | undefined;

  constructor(db: Database, log: Logger, of: { workspaceId: string; generation: number }) {
    this.#db = db;
    this.#log = log;
    this.#of = of;
  }

  started(step: Step, message: string): void {
    this.#add("step-started", step, message);
  }

  done(step: Step, message: string): void {
    this.#add("step-done", step, message);
  }

  failed(step: Step, message: string): void {
    this.#add("step-failed", step, message);
  }

  log(step: Step, line: string): void {
    this.#add("log", step, line.slice(0, 1000));
  }

  /** Settles when everything that was said is written. */
  async flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  #add(kind: Kind, step: Step, message: string): void {
    this.#waiting.push({ at: new Date(), kind, step, message });
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      const events = this.#waiting.map((event) => ({ ...event, ...this.#of }));
      this.#waiting = [];
      try {
        await this.#db.transaction(async (tx) => {
          await tx.insert(workspaceEvents).values(events);
          await notify(tx, "workspace", this.#of.workspaceId);
        });
      } catch (error) {
        this.#log.warn({ err: error, ...this.#of }, "workspace events could not be written");
      }
    }
  }
}
