/** A token bucket for each key: allows a minute's actions at once, and refills evenly. */

const MINUTE_MS = 60_000;

/** Above this number of keys, those that did nothing for a minute are forgotten. */
const MOST_BUCKETS = 10_000;

/** What is left of a key's minute, and when that was so. It fills again evenly. */
type Bucket = { left: number; at: number };

export class RateLimit {
  readonly #buckets = new Map<string, Bucket>();

  /** Counts one action; or returns the seconds until the next one is allowed, and counts nothing. */
  take(key: string, perMinute: number, at = performance.now()): number | undefined {
    const bucket = this.#buckets.get(key) ?? { left: perMinute, at };
    const left = Math.min(perMinute, bucket.left + ((at - bucket.at) / MINUTE_MS) * perMinute);
    if (left < 1) return Math.ceil((((1 - left) / perMinute) * MINUTE_MS) / 1000);
    if (this.#buckets.size >= MOST_BUCKETS) this.#forget(at);
    this.#buckets.set(key, { left: left - 1, at });
    return undefined;
  }

  #forget(at: number): void {
    for (const [key, bucket] of this.#buckets) if (at - bucket.at >= MINUTE_MS) this.#buckets.delete(key);
  }
}
