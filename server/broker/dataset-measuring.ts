/** One elected broker measures the folders that datasets are: new ones at once, each again every hour. */
import { holdLeadership } from "#server/broker/reconciler/leadership.ts";
import { systemContext } from "#server/context.ts";
import type { OpenDatabase } from "#server/db/client.ts";
import { createLive } from "#server/live.ts";
import type { Logger } from "#server/log.ts";
import { recordSize } from "#server/services/dataset/record-size.ts";
import { startRounds } from "./rounds.ts";

const EVERY_MS = 60_000;

/** Starts the loop; `stop` ends the measuring under way, which is begun again by the next who leads. */
export function startDatasetMeasuring(database: OpenDatabase, log: Logger): { stop: () => Promise<void> } {
  const leadership = holdLeadership(database.sql, log, "dataset measuring");
  const live = createLive(database.sql);
  const ending = new AbortController();

  const round = async (): Promise<void> => {
    try {
      if (!(await leadership.isLeader())) return;
      while (!ending.signal.aborted && (await recordSize(systemContext(database.db), ending.signal)));
    } catch (error) {
      if (!ending.signal.aborted) log.warn({ err: error }, "datasets could not be measured");
    }
  };
  const rounds = startRounds(EVERY_MS, round);
  // What a start reads ahead is told under a workspace's id and changes nothing here.
  const unsubscribe = live.subscribe(["dataset"], ({ id }) => {
    if (id === null || id.startsWith("dst-")) rounds.wake();
  });
  return {
    stop: async () => {
      ending.abort();
      unsubscribe();
      await live.close();
      await rounds.stop();
      await leadership.release();
    },
  };
}
