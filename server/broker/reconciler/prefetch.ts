/** Reads the datasets of a workspace that starts into the cache of its node, one after the other, and tells how far. */
import { systemContext } from "#server/context.ts";
import type { Database } from "#server/db/client.ts";
import type { DatasetMount, Launcher, Prefetched } from "#server/launchers/launcher.ts";
import type { Logger } from "#server/log.ts";
import { recordPrefetch } from "#server/services/workspace-dataset/record-prefetch.ts";
import type { WorkspaceRow } from "./state.ts";

const TELL_EVERY_MS = 1_000;

type Work = {
  db: Database;
  log: Logger;
  row: Pick<WorkspaceRow, "id" | "generation">;
  datasets: readonly DatasetMount[];
  /** As a launcher reads one (`Launcher.prefetch`). */
  read: NonNullable<Launcher["prefetch"]>;
  signal: AbortSignal;
};

/** One after the other in the whole broker: they share its disk, and its few threads for files. */
let turn: Promise<void> = Promise.resolve();

/** Where the broker's own machine reads. */
export async function prefetchHere(work: Work): Promise<void> {
  turn = turn.then(async () => await prefetchDatasets(work));
  await turn;
}

/** Never throws: a dataset that is not in the cache is read when a notebook asks for it. */
export async function prefetchDatasets({ db, log, row, datasets, read, signal }: Work): Promise<void> {
  try {
    for (const dataset of datasets) {
      const of = { workspaceId: row.id, generation: row.generation, datasetId: dataset.id };
      const reading = follow(signal, async (so) => await recordPrefetch(systemContext(db), of, so));
      try {
        const end = await read(dataset, reading.tell, reading.signal);
        const wanted = (await reading.settle()) && !signal.aborted;
        if (end !== undefined && wanted) await recordPrefetch(systemContext(db), of, end);
      } finally {
        await reading.settle();
      }
      if (signal.aborted) return;
    }
  } catch (error) {
    log.warn({ err: error, workspaceId: row.id }, "datasets were not read ahead");
  }
}

/** Writes the newest of what is told at most once a second; ends the reading when nobody wants it any more. */
function follow(outer: AbortSignal, write: (so: Prefetched) => Promise<boolean>) {
  const unwanted = new AbortController();
  let writing: Promise<void> | undefined;
  let writtenAt = Number.NEGATIVE_INFINITY;
  const tell = (so: Prefetched): boolean => {
    if (writing === undefined && performance.now() - writtenAt >= TELL_EVERY_MS) {
      writtenAt = performance.now();
      writing = write(so)
        .then((wanted) => {
          if (!wanted) unwanted.abort();
        })
        .catch(() => unwanted.abort())
        .finally(() => {
          writing = undefined;
        });
    }
    return !unwanted.signal.aborted;
  };
  return {
    tell,
    signal: AbortSignal.any([outer, unwanted.signal]),
    /** Waits for the write under way; false when the reading was ended because nobody wants it. */
    settle: async () => {
      await writing;
      return !unwanted.signal.aborted;
    },
  };
}
