/** Rolls up the hours of GPU time that are over and sweeps the samples that had their time. Any broker may: rounds take turns. */
import { systemContext } from "#server/context.ts";
import type { OpenDatabase } from "#server/db/client.ts";
import type { Logger } from "#server/log.ts";
import { sweepSamples } from "#server/services/lease/sweep-samples.ts";
import { rollUp } from "#server/services/utilisation/roll-up.ts";
import { startRounds } from "./rounds.ts";

const EVERY_MS = 60_000;

/** Starts the loop; `stop` waits for the step under way. */
export function startUsageLoop(options: { database: OpenDatabase; log: Logger }): { stop: () => Promise<void> } {
  const { database, log } = options;
  let stopped = false;

  const round = async (): Promise<void> => {
    try {
      while (!stopped && (await rollUp(systemContext(database.db))));
      while (!stopped && (await sweepSamples(systemContext(database.db))));
    } catch (error) {
      log.warn({ err: error }, "GPU time could not be rolled up");
    }
  };
  const rounds = startRounds(EVERY_MS, round);
  return {
    stop: async () => {
      stopped = true;
      await rounds.stop();
    },
  };
}
