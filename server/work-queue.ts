/** Work of which little goes on at a time: the rest waits in order, and what cannot even wait is refused at once. */
import { SluiceError } from "#server/errors.ts";

export type WorkQueueOptions = {
  /** How many go on at once. */
  maxRunning: number;
  /** How many wait for a place. */
  maxWaiting: number;
  /** How much of what waits may belong to clients that have proved nothing: to one of them, and to all together. */
  maxWaitingUnproved?: { ofOne: number; ofAll: number };
  /** The message of the `too-many` error beyond that. */
  refusal: string;
  retryAfterSeconds: number;
};

export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #waiting: { begin: () => void; unproved: string | undefined }[] = [];
  #running = 0;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
  }

  /**
   * Does the work when there is a place for it; throws `too-many` when too many wait. `unproved` names the client that
   * asks for it without proof of who it is.
   */
  async run<T>(work: () => Promise<T>, unproved?: string): Promise<T> {
    const { maxRunning, refusal, retryAfterSeconds } = this.#options;
    if (this.#running < maxRunning) this.#running += 1;
    else if (this.#mayWait(unproved)) {
      await new Promise<void>((resolve) => this.#waiting.push({ begin: resolve, unproved }));
    } else throw new SluiceError("too-many", refusal, { retryAfterSeconds });
    try {
      return await work();
    } finally {
      // The place goes to the next one directly, so that nobody comes between.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next.begin();
    }
  }

  /** How much waits for a place. */
  get waiting(): number {
    return this.#waiting.length;
  }

  #mayWait(unproved: string | undefined): boolean {
    const { maxWaiting, maxWaitingUnproved } = this.#options;
    if (this.#waiting.length >= maxWaiting) return false;
    if (unproved === undefined || maxWaitingUnproved === undefined) return true;
    const others = this.#waiting.filter((each) => each.unproved !== undefined);
    const ofOne = others.filter((each) => each.unproved === unproved);
    return others.length < maxWaitingUnproved.ofAll && ofOne.length < maxWaitingUnproved.ofOne;
  }
}
