/** What running workspaces print, written among their lines for as long as somebody follows them. */
import { and, desc, eq, max, sql } from "drizzle-orm";
import type { Database } from "#server/db/client.ts";
import { workspaceEvents } from "#server/db/schema/index.ts";
import type { Launcher } from "#server/launchers/launcher.ts";
import type { Logger } from "#server/log.ts";
import { FOLLOWED_EVERY_MS } from "#server/services/workspace/follow.ts";
import { Journal, type Step } from "./journal.ts";
import { readWorkspace } from "./state.ts";

/** So long after it was last said that somebody follows. */
const PATIENCE_MS = 3 * FOLLOWED_EVERY_MS;
/** Of one start; older ones give way. */
const KEPT_LINES = 2000;
const STEP = "jupyter" satisfies Step;

type Followed = { abort: AbortController; patience: NodeJS.Timeout; done: Promise<void> };
type Start = { workspaceId: string; generation: number };

export class RunningLogs {
  readonly #db: Database;
  readonly #launchers: ReadonlyMap<string, Pick<Launcher, "followLog">>;
  readonly #log: Logger;
  readonly #followed = new Map<string, Followed>();

  constructor(db: Database, launchers: ReadonlyMap<string, Pick<Launcher, "followLog">>, log: Logger) {
    this.#db = db;
    this.#launchers = launchers;
    this.#log = log;
  }

  /** Somebody follows this workspace, now and for a while. */
  follow(id: string): void {
    const known = this.#followed.get(id);
    if (known !== undefined) {
      known.patience.refresh();
      return;
    }
    const abort = new AbortController();
    const patience = setTimeout(() => abort.abort(), PATIENCE_MS);
    const done = this.#read(id, abort.signal)
      .catch((error: unknown) => this.#log.warn({ err: error, workspaceId: id }, "a log could not be followed"))
      .finally(() => {
        clearTimeout(patience);
        this.#followed.delete(id);
      });
    this.#followed.set(id, { abort, patience, done });
  }

  async stop(): Promise<void> {
    const followed = [...this.#followed.values()];
    for (const { abort } of followed) abort.abort();
    await Promise.all(followed.map(({ done }) => done));
  }

  /** Goes on after the newest line that is written, until its server ends or nobody follows any more. */
  async #read(id: string, signal: AbortSignal): Promise<void> {
    const row = await readWorkspace(this.#db, id);
    if (row === undefined || row.desired !== "running" || row.observed !== "running") return;
    const launcher = this.#launchers.get(row.launcher);
    if (launcher?.followLog === undefined) return;
    const start = { workspaceId: id, generation: row.generation };
    // Who follows looks once a second, and nobody else is told of a line.
    const journal = new Journal<Step>(this.#db, this.#log.child(start), async (tx, events) => {
      await tx.insert(workspaceEvents).values(events.map((event) => ({ ...event, ...start })));
    });
    try {
      const since = (await newestLine(this.#db, start)) ?? row.startedAt ?? new Date();
      await launcher.followLog(id, since, (line, at) => journal.log(STEP, line, at), signal);
    } finally {
      await journal.flush();
      await forgetOldLines(this.#db, start);
    }
  }
}

const linesOf = ({ workspaceId, generation }: Start) =>
  and(
    eq(workspaceEvents.workspaceId, workspaceId),
    eq(workspaceEvents.generation, generation),
    eq(workspaceEvents.kind, "log"),
  );

async function newestLine(db: Database, start: Start): Promise<Date | null | undefined> {
  const [newest] = await db
    .select({ at: max(workspaceEvents.at) })
    .from(workspaceEvents)
    .where(linesOf(start));
  return newest?.at;
}

async function forgetOldLines(db: Database, start: Start): Promise<void> {
  const lines = and(linesOf(start), eq(workspaceEvents.step, STEP));
  const last = db
    .select({ seq: workspaceEvents.seq })
    .from(workspaceEvents)
    .where(lines)
    .orderBy(desc(workspaceEvents.seq))
    .offset(KEPT_LINES)
    .limit(1);
  await db.delete(workspaceEvents).where(and(lines, sql`${workspaceEvents.seq} <= (${last})`));
}
