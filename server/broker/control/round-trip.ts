/** How far away a server is, from pings: what a request with `maxRttUs` is placed by. */

/** A ping that waited behind other work says nothing of the way: the fastest of the last ones counts. */
const LOOKED_AT = 15;

export class RoundTrip {
  readonly #last: number[] = [];

  /** One ping took so long, milliseconds. */
  add(ms: number): void {
    this.#last.push(ms);
    if (this.#last.length > LOOKED_AT) this.#last.shift();
  }

  /** Microseconds; nothing before the first answer. */
  microseconds(): number | undefined {
    return this.#last.length === 0 ? undefined : Math.max(1, Math.round(Math.min(...this.#last) * 1000));
  }
}
