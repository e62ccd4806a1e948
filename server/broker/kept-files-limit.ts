/** One elected broker holds the files of removed workspaces to their limits. */
import { holdLeadership } from "#server/broker/reconciler/leadership.ts";
import { systemContext } from "#server/context.ts";
import type { OpenDatabase } from "#server/db/client.ts";
import type { Launcher } from "#server/launchers/launcher.ts";
import type { Logger } from "#server/log.ts";
import {
  type KeptWorkspace,
  limitKeptFiles,
  type MeasureKept,
  mostKeptBytes,
} from "#server/services/workspace/limit-kept-files.ts";
import { startRounds } from "./rounds.ts";

const EVERY_MS = 60_000;
/** A measurement that failed is made again after this time. */
const AGAIN_MS = 3_600_000;
/** Maximum cached sizes; the oldest are evicted. */
const MOST_KNOWN = 10_000;

type Work = { launchers: ReadonlyMap<string, Launcher>; log: Logger };

export function startKeptFilesLimit(database: OpenDatabase, { launchers, log }: Work): { stop: () => Promise<void> } {
  const leadership = holdLeadership(database.sql, log, "limit of removed files");
  const ending = new AbortController();
  const measure = measureOnce(launchers, log, ending.signal);
  const round = async (): Promise<void> => {
    try {
      if (!(await leadership.isLeader())) return;
      const given = await limitKeptFiles(systemContext(database.db), measure);
      if (given > 0) log.info({ workspaces: given }, "files of removed workspaces are above their limits");
    } catch (error) {
      if (!ending.signal.aborted) log.warn({ err: error }, "limits of removed files could not be checked");
    }
  };
  const rounds = startRounds(EVERY_MS, round);
  return {
    stop: async () => {
      ending.abort();
      await rounds.stop();
      await leadership.release();
    },
  };
}

/**
 * Files of a stopped workspace do not change, so each one is measured once, and again when it was restored. Files that
 * take too long to measure count as much as the limit: otherwise many small files would evade it. The last removed
 * workspace is kept in any case.
 */
export function measureOnce(launchers: ReadonlyMap<string, Launcher>, log: Logger, signal: AbortSignal): MeasureKept {
  const known = new Map<string, { filesKeptUntil: number; bytes: number; until: number }>();
  return async ({ id, launcher, filesKeptUntil }: KeptWorkspace) => {
    signal.throwIfAborted();
    const before = known.get(id);
    if (before?.filesKeptUntil === filesKeptUntil.getTime() && performance.now() < before.until) return before.bytes;
    const measured = await measureFiles(id, launchers.get(launcher), log, signal);
    const bytes = measured ?? mostKeptBytes();
    const until = measured === undefined ? performance.now() + AGAIN_MS : Number.POSITIVE_INFINITY;
    known.delete(id);
    known.set(id, { filesKeptUntil: filesKeptUntil.getTime(), bytes, until });
    if (known.size > MOST_KNOWN) known.delete(known.keys().next().value ?? "");
    return bytes;
  };
}

async function measureFiles(id: string, launcher: Launcher | undefined, log: Logger, signal: AbortSignal) {
  try {
    return (await launcher?.filesBytes?.(id, signal)) ?? 0;
  } catch (error) {
    signal.throwIfAborted();
    log.warn({ err: error, workspaceId: id }, "files of a removed workspace could not be measured");
    return undefined;
  }
}
