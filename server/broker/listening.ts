/**
 * Since when a process has listened without a break. Who is silent meanwhile may be judged for it; a machine that was
 * suspended, a process that was stopped, or one whose clock was set, has heard nobody, whoever spoke.
 */

/** The clock is looked at as often, whatever else goes on. */
const LOOK_MS = 1_000;
/** Between two looks less time passes, also where the machine is busy. */
const BREAK_MS = 5_000;

export class Listening {
  #since: number | undefined;
  #looked = 0;

  /** Since when there was no break, as of `now`; milliseconds since 1970. */
  since(now: number): number {
    if (this.#since === undefined || Math.abs(now - this.#looked) > BREAK_MS) this.#since = now;
    this.#looked = now;
    return this.#since;
  }

  /** Nobody has listened; the next `since` begins anew. */
  interrupt(): void {
    this.#since = undefined;
  }

  /** Looks at the clock until `stop`, so that a break is seen which falls into work that takes long by itself. */
  start(): { stop: () => void } {
    const timer = setInterval(() => {
      // After an interruption nobody listens yet, however long the next look takes.
      if (this.#since !== undefined) this.since(Date.now());
    }, LOOK_MS);
    return { stop: () => clearInterval(timer) };
  }
}
