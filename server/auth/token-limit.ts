/** How often a personal access token may ask: a script that runs wild leaves the portal to the others. */
import { z } from "zod";
import type { Principal } from "#server/auth/principal.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";

const MINUTE_MS = 60_000;

/** Beyond so many tokens, those that have not asked for a minute are forgotten. */
const REMEMBERED = 10_000;

/** What is left of a token's minute, and when that was so. It fills again evenly. */
type Bucket = { left: number; at: number };
const buckets = new Map<string, Bucket>();

/** Counts a call; throws `too-many` with `retryAfterSeconds` to a token that has used its minute up. */
export function limitToken(principal: Principal, at = performance.now()): void {
  if (principal.kind !== "user" || principal.tokenId === undefined) return;
  const limit = env().SLUICE_TOKEN_REQUESTS_PER_MINUTE;
  const bucket = buckets.get(principal.tokenId) ?? { left: limit, at };
  const left = Math.min(limit, bucket.left + ((at - bucket.at) / MINUTE_MS) * limit);
  if (left < 1) {
    const seconds = Math.ceil((((1 - left) / limit) * MINUTE_MS) / 1000);
    const words = `This access token may make ${limit} calls a minute. Try again in ${seconds} s.`;
    throw new SluiceError("too-many", words, { retryAfterSeconds: seconds });
  }
  if (buckets.size >= REMEMBERED) forget(at);
  buckets.set(principal.tokenId, { left: left - 1, at });
}

/** What `Retry-After` says of such an error. */
export function retryAfterSeconds(error: SluiceError): number {
  const detail = z.object({ retryAfterSeconds: z.int().min(1) }).safeParse(error.detail);
  return detail.success ? detail.data.retryAfterSeconds : 1;
}

function forget(at: number): void {
  for (const [token, bucket] of buckets) if (at - bucket.at >= MINUTE_MS) buckets.delete(token);
}
