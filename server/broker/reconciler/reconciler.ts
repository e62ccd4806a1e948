/**
 * Brings workspaces from what is wanted to what is: one loop in the whole installation, elected by an advisory lock,
 * woken by every change and at least every two seconds. Nothing it needs lives only in its memory.
 */

import { systemContext } from "#server/context.ts";
import type { Database, OpenDatabase } from "#server/db/client.ts";
import { env } from "#server/env.ts";
import { configuredLaunchers } from "#server/launchers/configured.ts";
import type { Launcher, Observation } from "#server/launchers/launcher.ts";
import { createLive } from "#server/live.ts";
import { type Logger, logger } from "#server/log.ts";
import { egressPolicyOf } from "#server/services/team/egress-policy-of.ts";
import { bringBack } from "#server/services/workspace/bring-back.ts";
import { followPlace } from "#server/services/workspace/follow-place.ts";
import { keepsFiles } from "#server/services/workspace/kept-files.ts";
import { tellRestart } from "#server/services/workspace/tell-restart.ts";
import { holdLeadership, type Leadership } from "./leadership.ts";
import { lookForOrphans } from "./orphans.ts";
import { recordBuilds } from "./record-builds.ts";
import { RunningLogs } from "./running-logs.ts";
import { startWorkspace } from "./start-workspace.ts";
import { openWorkspaces, readWorkspace, type WorkspaceRow } from "./state.ts";
import { recordLoss, stopWorkspace } from "./stop-workspace.ts";

const INTERVAL_MS = 2_000;
/** So often what belongs to no workspace is looked for. */
export const ORPHANS_MS = 3_600_000;

export type Reconciler = { stop: () => Promise<void> };

/** Starts the loop. `stop` ends it and leaves every workspace as it is. */
export async function startReconciler(
  database: OpenDatabase,
  options: { launchers?: Map<string, Launcher>; log?: Logger } = {},
): Promise<Reconciler> {
  const launchers =
    options.launchers ?? (await configuredLaunchers({ egressPolicyOf: (id) => egressPolicyOf(database.db, id) }));
  const log = options.log ?? logger("reconciler");
  const loop = new Loop(database.db, launchers, log, holdLeadership(database.sql, log, "reconciler"));
  const live = createLive(database.sql);
  const unsubscribe = live.subscribe(["workspace", "setup"], (event) => loop.hear(event.id));
  const ignore = live.subscribe(["followed"], ({ id }) => void loop.follow(id));
  const timer = setInterval(() => loop.wake(), INTERVAL_MS);
  loop.wake();
  return {
    stop: async () => {
      clearInterval(timer);
      unsubscribe();
      ignore();
      await live.close();
      await loop.stop();
    },
  };
}

type Running = { generation: number; launcher: string; starting: boolean; abort: AbortController; done: Promise<void> };

class Loop {
  readonly #db: Database;
  readonly #launchers: Map<string, Launcher>;
  readonly #log: Logger;
  readonly #leadership: Leadership;
  readonly #running = new Map<string, Running>();
  readonly #logs: RunningLogs;
  #finished = 0;
  #lookedForOrphans = Number.NEGATIVE_INFINITY;
  #round: Promise<void> | undefined;
  #again = false;
  #stopped = false;

  constructor(db: Database, launchers: Map<string, Launcher>, log: Logger, leadership: Leadership) {
    this.#db = db;
    this.#launchers = launchers;
    this.#log = log;
    this.#leadership = leadership;
    this.#logs = new RunningLogs(db, launchers, log);
  }

  /** Something changed. What we are working on ourselves says so often; that is no reason to look at all the rest. */
  hear(id: string | null): void {
    if (id === null || !this.#running.has(id)) this.wake();
    else void this.#look(id).catch((error: unknown) => this.#log.warn({ err: error }, "reconciler look failed"));
  }

  /** Looks at everything soon; calls during a round make one more round. */
  wake(): void {
    if (this.#stopped) return;
    this.#again = true;
    this.#round ??= this.#rounds().finally(() => {
      this.#round = undefined;
    });
  }

  /** Somebody follows what this workspace prints; the leader reads it. */
  async follow(id: string | null): Promise<void> {
    // Without the database nobody leads; who follows says so again.
    const leads = await this.#leadership.isLeader().catch(() => false);
    if (!leads || this.#stopped) await this.#logs.stop();
    else if (id !== null) this.#logs.follow(id);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#round;
    await this.#logs.stop();
    for (const work of this.#running.values()) work.abort.abort();
    await Promise.all([...this.#running.values()].map((work) => work.done));
    await this.#leadership.release();
  }

  async #rounds(): Promise<void> {
    while (this.#again && !this.#stopped) {
      this.#again = false;
      try {
        if (!(await this.#leadership.isLeader())) {
          for (const work of this.#running.values()) if (work.starting) work.abort.abort();
          return;
        }
        await recordBuilds(this.#db, env().SLUICE_STATE_DIR, this.#log);
        for (const id of await openWorkspaces(this.#db, new Date())) await this.#look(id);
        if (performance.now() - this.#lookedForOrphans >= ORPHANS_MS) {
          this.#lookedForOrphans = performance.now();
          await lookForOrphans(this.#db, this.#launchers, this.#log);
        }
      } catch (error) {
        // Without the database nothing can be decided; the next round tries again.
        this.#log.warn({ err: error }, "reconciler round failed");
        return;
      }
    }
  }

  /** Begins what the workspace needs, unless that is under way already. */
  async #look(id: string): Promise<void> {
    const before = this.#finished;
    const row = await readWorkspace(this.#db, id);
    // What ended meanwhile has changed the row that we read.
    if (this.#finished !== before) return await this.#look(id);
    if (row === undefined || this.#stopped || isSettled(row)) return;
    const working = this.#running.get(id);
    if (working !== undefined) {
      const outdated = row.desired !== "running" || row.generation !== working.generation;
      if (working.starting && outdated) working.abort.abort();
      return;
    }
    const launcher = this.#launchers.get(row.launcher);
    if (launcher === undefined) {
      this.#log.error({ workspaceId: id, launcher: row.launcher }, "no such launcher is configured");
      return;
    }
    const common = { db: this.#db, log: this.#log, launcher, row };
    const leads = async () => await this.#leadership.isLeader();
    if (row.desired !== "running") {
      this.#begin(row, false, () => stopWorkspace(common));
    } else if (row.observed === "running") {
      // One whose state cannot be told must not keep the round from the others.
      const seen = await launcher.observe(id).catch((error: unknown) => {
        this.#log.error({ err: error, workspaceId: id }, "workspace could not be observed");
        return undefined;
      });
      if (seen === undefined) return;
      const lost = seen.state === "stopped" || seen.handle.generation !== row.generation;
      const reason = (seen.state === "stopped" ? seen.reason : undefined) ?? "The workspace is no longer there.";
      if (seen.state === "stopped" && seen.placeLost)
        this.#begin(row, false, () => bringBack(systemContext(this.#db), { row, reason }));
      else if (lost) this.#begin(row, false, () => recordLoss(common, reason));
      else if (seen.state === "running") await this.#tell(row, seen);
    } else if (this.#starting(row.launcher) < launcher.startsAtOnce) {
      this.#begin(row, true, (signal) => startWorkspace({ ...common, signal, leads }));
    }
  }

  /** How many starts are under way by this launcher. */
  #starting(name: string): number {
    return [...this.#running.values()].filter(({ launcher, starting }) => starting && launcher === name).length;
  }

  /** What the launcher sees of one that runs, to its people. */
  async #tell(
    row: WorkspaceRow,
    { news, restarted }: Pick<Extract<Observation, { state: "running" }>, "news" | "restarted">,
  ): Promise<void> {
    const ctx = systemContext(this.#db);
    try {
      await followPlace(ctx, { row, news });
      if (restarted !== undefined) await tellRestart(ctx, { row, restarted });
    } catch (error) {
      this.#log.warn({ err: error, workspaceId: row.id }, "what is to be known of a workspace could not be told");
    }
  }

  #begin(row: WorkspaceRow, starting: boolean, work: (signal: AbortSignal) => Promise<void>): void {
    const abort = new AbortController();
    const done = work(abort.signal).then(
      () => {
        this.#forget(row.id);
        this.wake();
      },
      (error: unknown) => {
        // Not at once: what failed is tried again by the next regular round.
        this.#forget(row.id);
        this.#log.error({ err: error, workspaceId: row.id }, "workspace could not be reconciled");
      },
    );
    this.#running.set(row.id, { generation: row.generation, launcher: row.launcher, starting, abort, done });
  }

  #forget(id: string): void {
    this.#running.delete(id);
    this.#finished += 1;
  }
}

/** No work is left: the desired state is reached, a failure waits for a person, or removed files are still kept. */
function isSettled(row: WorkspaceRow): boolean {
  if (row.desired === "running") return row.observed === "failed";
  return row.observed === (keepsFiles(row, new Date()) ? "stopped" : row.desired);
}
