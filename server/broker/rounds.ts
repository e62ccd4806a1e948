/** Rounds of work, one at a time. */

/** Who wakes during a round has another one so long after it. */
const PAUSE_MS = 50;

export type Rounds = {
  /** Has a round done now, or, when one is under way, another one after it. */
  wake: () => void;
  /** Waits for the round under way; there is none after it. */
  stop: () => Promise<void>;
};

/** Does a round at once, every `everyMs` and when somebody wakes it. `round` takes care of its own failures. */
export function startRounds(everyMs: number, round: () => Promise<void>): Rounds {
  let running: Promise<void> | undefined;
  let again = false;
  let stopped = false;
  const wake = (): void => {
    if (stopped) return;
    if (running !== undefined) {
      again = true;
      return;
    }
    running = round().finally(() => {
      running = undefined;
      if (!again) return;
      again = false;
      setTimeout(wake, PAUSE_MS).unref();
    });
  };
  const timer = setInterval(wake, everyMs);
  wake();
  return {
    wake,
    stop: async () => {
      stopped = true;
      clearInterval(timer);
      await running;
    },
  };
}
