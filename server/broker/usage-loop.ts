/** Rolls up the hours of GPU time that are over and sweeps the samples that had their time. Any broker may: rounds take turns. */
import { systemContext } from "#server/context.ts";
import type { OpenDatabase } from "#server/db/client.ts";
import type { Logger } from "#server/log.ts";
import { sweepSamples } from "#server/services/lease/sweep-samples.ts";
import { rollUp } from "#server/services/utilisation/roll-up.ts";

const EVERY_MS = 60_000;

/** Starts the loop; `stop` waits for the step under way. */
export function startUsageLoop(options: { database: OpenDatabase; log: Logger }): { stop: () => Promise<void> } {
  const { database, log } = options;
  let stopped = false;
  let running: Promise<void> | undefined;

  const round = async (): Promise<void> => {
    try {
      while (!stopped && (await rollUp(systemContext(database.db))));
      while (!stopped && (await sweepSamples(systemContext(database.db))));
    } catch (error) {
      log.warn({ err: error }, "GPU time could not be rolled up");
    }
  };
  const wake = (): void => {
    running ??= round().finally(() => {
      running = undefined;
    });
  };
  const timer = setInterval(wake, EVERY_MS);
  wake();
  return {
    stop: async () => {
      stopped = true;
      clearInterval(timer);
      await running;
    },
  };
}
