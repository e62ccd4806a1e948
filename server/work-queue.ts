/** Work of which little goes on at a time: the rest waits in order, and what cannot even wait is refused at once. */
import { SluiceError } from "#server/errors.ts";

export type WorkQueueOptions = {
  /** How many go on at once. */
  maxRunning: number;
  /** How many wait for a place. */
  maxWaiting: number;
  /** The message of the `too-many` error beyond that. */
  refusal: string;
  retryAfterSeconds: number;
};

export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
  }

  /** Does the work when there is a place for it; throws `too-many` when too many wait. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    const { maxRunning, maxWaiting, refusal, retryAfterSeconds } = this.#options;
    if (this.#running < maxRunning) this.#running += 1;
    else if (this.#waiting.length < maxWaiting) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else throw new SluiceError("too-many", refusal, { retryAfterSeconds });
    try {
      return await work();
    } finally {
      // The place goes to the next one directly, so that nobody comes between.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}
