/** How often each of many may do something: a minute's worth at once, and then evenly. */

const MINUTE_MS = 60_000;

/** Beyond so many keys, those that did nothing for a minute are forgotten. */
const REMEMBERED = 10_000;

/** What is left of a key's minute, and when that was so. It fills again evenly. */
type Bucket = { left: number; at: number };

export class RateLimit {
  readonly #buckets = new Map<string, Bucket>();

  /** Counts one; or gives the seconds after which the next is possible, and counts nothing. */
  take(key: string, perMinute: number, at = performance.now()): number | undefined {
    const bucket = this.#buckets.get(key) ?? { left: perMinute, at };
    const left = Math.min(perMinute, bucket.left + ((at - bucket.at) / MINUTE_MS) * perMinute);
    if (left < 1) return Math.ceil((((1 - left) / perMinute) * MINUTE_MS) / 1000);
    if (this.#buckets.size >= REMEMBERED) this.#forget(at);
    this.#buckets.set(key, { left: left - 1, at });
    return undefined;
  }

  #forget(at: number): void {
    for (const [key, bucket] of this.#buckets) if (at - bucket.at >= MINUTE_MS) this.#buckets.delete(key);
  }
}
