/** How often a personal access token may ask: a script that runs wild leaves the portal to the others. */
import { z } from "zod";
import type { Principal } from "#server/auth/principal.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";
import { RateLimit } from "#server/rate-limit.ts";

const calls = new RateLimit();

/** Counts a call; throws `too-many` with `retryAfterSeconds` to a token that has used its minute up. */
export function limitToken(principal: Principal, at = performance.now()): void {
  if (principal.kind !== "user" || principal.tokenId === undefined) return;
  const limit = env().SLUICE_TOKEN_REQUESTS_PER_MINUTE;
  const seconds = calls.take(principal.tokenId, limit, at);
  if (seconds === undefined) return;
  const words = `This access token may make ${limit} calls a minute. Try again in ${seconds} s.`;
  throw new SluiceError("too-many", words, { retryAfterSeconds: seconds });
}

/** What `Retry-After` says of such an error. */
export function retryAfterSeconds(error: SluiceError): number {
  const detail = z.object({ retryAfterSeconds: z.int().min(1) }).safeParse(error.detail);
  return detail.success ? detail.data.retryAfterSeconds : 1;
}
