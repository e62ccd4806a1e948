/**
 * One elected broker looks at every running workspace twice a minute: what its processes use, when somebody or
 * something last worked there; and stops those that have been idle for longer than their limit.
 */
import { and, eq, inArray, isNull, max } from "drizzle-orm";
import { holdLeadership } from "#server/broker/reconciler/leadership.ts";
import { systemContext } from "#server/context.ts";
import type { Database, OpenDatabase } from "#server/db/client.ts";
import { leases, workspaces } from "#server/db/schema/index.ts";
import { lastActivity } from "#server/jupyter/activity.ts";
import type { JupyterServer } from "#server/jupyter/server-settings.ts";
import { usageWithin } from "#server/jupyter/usage.ts";
import type { Launcher } from "#server/launchers/launcher.ts";
import type { Logger } from "#server/log.ts";
import { recordSamples, type WorkspaceSample } from "#server/services/workspace/record-samples.ts";
import { stopIdle } from "#server/services/workspace/stop-idle.ts";
import { warnOfStop } from "#server/services/workspace/warn-of-stop.ts";

const EVERY_MS = 30_000;
/** Workspaces that are asked at one time. */
const ASKED_AT_ONCE = 16;
/** After this time a round asks no further workspace: slow ones must not hold up the figures of all. */
const ASKING_MS = 20_000;
/** A workspace that takes longer is asked after all others. */
const SLOW_MS = 1_000;
/** A pod tells its processor time itself; more than so many thousandths of a core no machine has. */
const MOST_MILLI = 4_096_000;
/** Processor time of a core, in thousandths, from which on a workspace is at work even if no notebook says so. */
const WORKING_MILLI = 100;

export type WorkspaceWatch = {
  /** Looks now; settles when the round is written. */
  look: () => Promise<void>;
  stop: () => Promise<void>;
};

type Row = Pick<typeof workspaces.$inferSelect, "id" | "launcher" | "generation" | "endpoint" | "serverToken">;

/** Starts the loop; `stop` waits for the round under way. */
export function startWorkspaceWatch(
  database: OpenDatabase,
  options: { launchers: Map<string, Launcher>; log: Logger; everyMs?: number; askingMs?: number },
): WorkspaceWatch {
  const { launchers, log, everyMs = EVERY_MS, askingMs = ASKING_MS } = options;
  const leadership = holdLeadership(database.sql, log, "workspace watch");
  /** Processor time at the last look: its difference to the next is what was used between. */
  let before = new Map<string, { generation: number; cpuMs: number; at: number }>();
  /** When slow workspaces were last asked. They are asked after all others, the longest ago first. */
  const slowAt = new Map<string, number>();
  let running: Promise<void> | undefined;

  const round = async (): Promise<void> => {
    if (!(await leadership.isLeader())) {
      before = new Map();
      return;
    }
    const rows = await runningWorkspaces(database.db);
    const usages = new Map<string, { cpuMs: number; memoryBytes: number }>();
    for (const [name, launcher] of launchers) {
      const ids = rows.filter((row) => row.launcher === name).map((row) => row.id);
      for (const [id, usage] of await launcher.usage(ids)) usages.set(id, usage);
    }
    const measuredAt = new Date();
    const looked = performance.now();
    const worked = await lastGpuWork(database.db, rows);
    const samples: WorkspaceSample[] = [];
    const measured: typeof before = new Map();
    const present = new Set(rows.map((row) => row.id));
    for (const id of slowAt.keys()) if (!present.has(id)) slowAt.delete(id);
    const inOrder = rows.toSorted((a, b) => (slowAt.get(a.id) ?? 0) - (slowAt.get(b.id) ?? 0));
    await eachOf(inOrder, ASKED_AT_ONCE, async (row) => {
      const [said, activity] =
        performance.now() < looked + askingMs ? await ask(row, !usages.has(row.id)) : [null, null];
      const usage = usages.get(row.id) ?? said ?? undefined;
      if (usage === undefined) {
        // What cannot be measured may still be at work, and must not be stopped as idle.
        const activeAt = latest([worked.get(row.id), activity]);
        const { id: workspaceId, generation } = row;
        samples.push({ workspaceId, generation, activeAt, cpuMilli: null, memoryBytes: null });
        return;
      }
      const last = before.get(row.id);
      const since = last?.generation === row.generation ? last : undefined;
      // Without an earlier look there is nothing to compare with yet.
      const cpuMilli =
        since === undefined
          ? 0
          : Math.min(
              MOST_MILLI,
              Math.round((Math.max(0, usage.cpuMs - since.cpuMs) / Math.max(1, looked - since.at)) * 1000),
            );
      measured.set(row.id, { generation: row.generation, cpuMs: usage.cpuMs, at: looked });
      const active = [worked.get(row.id), activity];
      if (cpuMilli >= WORKING_MILLI) active.push(measuredAt);
      const activeAt = latest(active);
      const { id: workspaceId, generation } = row;
      samples.push({ workspaceId, generation, activeAt, cpuMilli, memoryBytes: usage.memoryBytes });
    });
    before = measured;
    // What one workspace tells of itself keeps nobody else's from being looked after.
    await recordSamples(systemContext(database.db), samples).catch((error: unknown) =>
      log.warn({ err: error }, "what workspaces use could not be recorded"),
    );
    for (const workspaceId of await stopIdle(systemContext(database.db))) {
      log.info({ workspaceId }, "idle workspace stopped");
    }
    await warnOfStop(systemContext(database.db));
  };

  /** Asks a workspace's server for its activity, and for its usage where `asksUsage` is set. */
  const ask = async (row: Row, asksUsage: boolean) => {
    const began = performance.now();
    const said = await Promise.all([asksUsage ? ofJupyter(row, usageWithin) : null, jupyterActivity(row)]);
    if (performance.now() - began < SLOW_MS) slowAt.delete(row.id);
    else slowAt.set(row.id, began);
    return said;
  };

  const jupyterActivity = async (row: Row) =>
    await ofJupyter(row, async (server) => await lastActivity(server, new Date()));

  /** A server that does not answer tells nothing about anybody's work. */
  const ofJupyter = async <T>(row: Row, asked: (server: JupyterServer) => Promise<T>): Promise<T | null> => {
    if (row.endpoint === null || row.serverToken === null) return null;
    return await asked({ endpoint: row.endpoint, token: row.serverToken }).catch((error: unknown) => {
      log.debug({ err: error, workspaceId: row.id }, "the Jupyter server did not say what it does");
      return null;
    });
  };

  const look = async (): Promise<void> => {
    running ??= round()
      .catch((error: unknown) => log.warn({ err: error }, "workspaces could not be measured"))
      .finally(() => {
        running = undefined;
      });
    await running;
  };
  const timer = setInterval(() => void look(), everyMs);
  return {
    look,
    stop: async () => {
      clearInterval(timer);
      await running;
      await leadership.release().catch(() => undefined);
    },
  };
}

async function runningWorkspaces(db: Database): Promise<Row[]> {
  const { id, launcher, generation, endpoint, serverToken } = workspaces;
  return await db
    .select({ id, launcher, generation, endpoint, serverToken })
    .from(workspaces)
    .where(and(isNull(workspaces.podUid), eq(workspaces.desired, "running"), eq(workspaces.observed, "running")));
}

/** When the leases that a workspace holds last had GPU work. */
async function lastGpuWork(db: Database, rows: Row[]): Promise<Map<string, Date>> {
  if (rows.length === 0) return new Map();
  const found = await db
    .select({ workspaceId: leases.workspaceId, at: max(leases.usageAt) })
    .from(leases)
    .where(
      and(
        inArray(leases.state, ["active", "ending"]),
        inArray(
          leases.workspaceId,
          rows.map((row) => row.id),
        ),
      ),
    )
    .groupBy(leases.workspaceId);
  return new Map(found.flatMap(({ workspaceId, at }) => (at === null ? [] : [[workspaceId, at] as const])));
}

function latest(times: (Date | null | undefined)[]): Date | null {
  const known = times.flatMap((one) => (one === undefined || one === null ? [] : one.getTime()));
  return known.length === 0 ? null : new Date(Math.max(...known));
}

/** Runs `work` for each, some at a time. */
async function eachOf<T>(all: readonly T[], atOnce: number, work: (one: T) => Promise<void>): Promise<void> {
  const rest = all[Symbol.iterator]();
  await Promise.all(
    Array.from({ length: Math.min(atOnce, all.length) }, async () => {
      for (const one of rest) await work(one);
    }),
  );
}
