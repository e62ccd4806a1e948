/** How long a request will wait, as far as the ends of leases tell. */
import { evaluateQueue, inOrder } from "./queue.ts";
import type { Holding, World } from "./types.ts";

/** No estimate looks further than this many ends of leases. */
const STEPS = 60;

/**
 * Seconds until the grant if every lease lasts to its end and nobody else comes; nothing when no end of a lease
 * leads there (a server is away, for example).
 */
export function estimateWait(requestId: string, world: World): number | undefined {
  let holdings: Holding[] = [...world.holdings];
  const ordered = inOrder(world.queue);
  // Those behind do not delay it, and need not be judged at every step.
  let queue = ordered.slice(0, ordered.findIndex((waiting) => waiting.requestId === requestId) + 1);
  let at = world.now;
  for (let step = 0; step < STEPS; step++) {
    const verdicts = evaluateQueue({ ...world, now: at, holdings, queue });
    for (const verdict of verdicts) {
      if (verdict.state === "queued") continue;
      if (verdict.requestId === requestId) {
        return verdict.state === "granted" ? Math.max(0, Math.ceil((at - world.now) / 1000)) : undefined;
      }
      const request = queue.find((waiting) => waiting.requestId === verdict.requestId);
      if (verdict.state === "granted" && request) {
        holdings.push({
          ...verdict.placement,
          leaseId: request.requestId,
          teamId: request.teamId,
          userId: request.userId,
          expiresAt: at + request.lengthMs,
          who: request.who,
          lastWorkAt: at,
        });
      }
      queue = queue.filter((waiting) => waiting.requestId !== verdict.requestId);
    }
    if (holdings.length === 0) return undefined;
    const next = Math.min(...holdings.map((holding) => holding.expiresAt));
    at = Math.max(at, next);
    holdings = holdings.filter((holding) => holding.expiresAt > at);
  }
  return undefined;
}
