import type { Principal } from "#server/auth/principal.ts";
import { SluiceError } from "#server/errors.ts";
import { networkOf } from "#server/http/client-address.ts";
import { Places } from "#server/http/places.ts";

/**
 * Maximum event streams of one person, and of one network without a sign-in. Each stream costs work at every change; a
 * tab has one, while it is seen.
 */
export const MOST_STREAMS = 50;

const shared = globalThis as typeof globalThis & { __sluiceOpenStreams?: Places };
// Next bundles routes apart, and they share one.
shared.__sluiceOpenStreams ??= new Places(MOST_STREAMS);
const places = shared.__sluiceOpenStreams;

/** Counts a stream and returns how it ends; throws `too-many` beyond the limit. */
export function openPlace(principal: Principal, address: string | undefined): () => void {
  const key = principal.kind === "user" ? principal.userId : networkOf(address ?? "unknown");
  const leave = places.take(key);
  if (leave !== undefined) return leave;
  const message = `You have ${MOST_STREAMS} open event streams, which is the limit. Close some, then try again.`;
  throw new SluiceError("too-many", message, { retryAfterSeconds: 10 });
}
