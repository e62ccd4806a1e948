/** Steps and log lines of long work, written as they happen so that its page shows them live. */
import type { Database, Transaction } from "#server/db/client.ts";
import { imageVersionEvents, workspaceEvents } from "#server/db/schema/index.ts";
import type { LaunchReport } from "#server/launchers/launcher.ts";
import { notify } from "#server/live.ts";
import type { Logger } from "#server/log.ts";

/** Of a workspace. */
export type Step = "environment" | "sandbox" | "pod" | "jupyter" | "kernel" | "stop" | "remove";
type Kind = (typeof workspaceEvents.$inferInsert)["kind"];
type Event<S> = { at: Date; kind: Kind; step: S; message: string };

/** Of one step; what prints more keeps its first lines. */
const LINES_OF_STEP = 2000;
/** Of one statement, whose parameters PostgreSQL counts with 16 bits. */
const EVENTS_AT_ONCE = 500;

/** Writes events in order, the lines of a moment together; a lost line never fails the work. */
export class Journal<S extends string> {
  readonly #db: Database;
  readonly #log: Logger;
  readonly #insert: (tx: Transaction, events: Event<S>[]) => Promise<void>;
  readonly #lines = new Map<S, number>();
  #waiting: Event<S>[] = [];
  #writing: Promise<void> | undefined;

  constructor(db: Database, log: Logger, insert: (tx: Transaction, events: Event<S>[]) => Promise<void>) {
    this.#db = db;
    this.#log = log;
    this.#insert = insert;
  }

  started(step: S, message: string): void {
    this.#add("step-started", step, message);
  }

  done(step: S, message: string): void {
    this.#add("step-done", step, message);
  }

  failed(step: S, message: string): void {
    this.#add("step-failed", step, message);
  }

  /** `at`: when it was printed, where that is known. */
  log(step: S, line: string, at?: Date): void {
    const lines = (this.#lines.get(step) ?? 0) + 1;
    this.#lines.set(step, lines);
    if (lines <= LINES_OF_STEP) this.#add("log", step, line.slice(0, 1000), at);
    if (lines === LINES_OF_STEP) this.#add("log", step, "More lines of this step are left out");
  }

  /** Settles when everything that was said is written. */
  async flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  #add(kind: Kind, step: S, message: string, at = new Date()): void {
    // PostgreSQL keeps no text with a NUL.
    this.#waiting.push({ at, kind, step, message: message.replaceAll("\0", "") });
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      const events = this.#waiting.splice(0, EVENTS_AT_ONCE);
      try {
        await this.#db.transaction(async (tx) => await this.#insert(tx, events));
      } catch (error) {
        this.#log.warn({ err: error }, "events could not be written");
      }
    }
  }
}

/** Of one start, or end, of a workspace. */
export function workspaceJournal(
  db: Database,
  log: Logger,
  of: { workspaceId: string; generation: number },
): Journal<Step> & LaunchReport {
  return new Journal<Step>(db, log.child(of), async (tx, events) => {
    await tx.insert(workspaceEvents).values(events.map((event) => ({ ...event, ...of })));
    await notify(tx, "workspace", of.workspaceId);
  });
}

/** Of a check of a proposed environment. */
export type CheckStep = "lock" | "build" | "launch" | "imports" | "gpu";

export function checkJournal(db: Database, log: Logger, of: { versionId: string; run: number }): Journal<CheckStep> {
  return new Journal<CheckStep>(db, log.child(of), async (tx, events) => {
    await tx.insert(imageVersionEvents).values(events.map((event) => ({ ...event, ...of })));
    await notify(tx, "environment", of.versionId);
  });
}
