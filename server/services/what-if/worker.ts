/** The thread that replays, so that the portal goes on answering: progress and the answer come as messages. */
import { parentPort, workerData } from "node:worker_threads";
import { messageFor } from "#server/errors.ts";
import { logger } from "#server/log.ts";
import { TooMuchWork } from "#server/scheduler/simulate/simulation.ts";
import { type ReplayInput, replay } from "./replay.ts";
import type { FromWorker } from "./run.ts";

/** About two minutes of one core for each pool that is tried. */
const MOST_WORK = 60_000_000;
const PROGRESS_MS = 500;

const inputs = workerData as ReplayInput[];
const tell = (message: FromWorker) => parentPort?.postMessage(message);

/** Types with more requests take longer. */
const weights = inputs.map(({ log }) => log.length + 1);
const whole = weights.reduce((sum, weight) => sum + weight, 0);
let toldAt = Number.NEGATIVE_INFINITY;

function answer(): FromWorker {
  let done = 0;
  const types = inputs.map((input, index) => {
    const weight = weights[index] ?? 0;
    const onProgress = (part: number) => {
      if (performance.now() - toldAt < PROGRESS_MS) return;
      toldAt = performance.now();
      tell({ progress: (done + part * weight) / whole });
    };
    try {
      return replay(input, { mostWork: MOST_WORK, onProgress });
    } catch (error) {
      if (error instanceof TooMuchWork) throw new Error(overloaded(input.gpuType, error));
      throw error;
    } finally {
      done += weight;
    }
  });
  return { types };
}

function overloaded(gpuType: string, { at, queued }: TooMuchWork): string {
  const count = queued.toLocaleString("en");
  return `The queue for ${gpuType} only grows: on ${new Date(at).toISOString().slice(0, 10)}, ${count} requests wait. Propose more GPUs, or look at a shorter time.`;
}

try {
  tell(answer());
} catch (error) {
  logger("what-if").error({ err: error }, "a replay has failed");
  tell({ failed: messageFor(error) });
}
