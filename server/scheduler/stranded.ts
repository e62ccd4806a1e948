/** What is free and serves none of those who wait. */
import { coTenancyIn, underPolicy } from "./allowed.ts";
import { type Asker, fits } from "./placement.ts";
import { roomOf } from "./room.ts";
import { promisesNow } from "./share.ts";
import type { World } from "./types.ts";

/**
 * What is stranded, thousandths: somebody waits, and it is free, on devices that take leases, in pieces that none of those
 * who wait could be given: too small for each of them, without what they need, or on a card that its holder's policy
 * keeps for itself. Nothing while nobody waits. What quotas leave to whom does not matter: this is what placement has
 * left over, not what rules hold back.
 */
export function strandedMilli(world: World): number {
  if (world.queue.length === 0) return 0;
  const { quotas } = promisesNow(world);
  const policyOf = coTenancyIn(quotas);
  const askers = new Map<string, Asker>();
  for (const one of world.queue) {
    const request = { ...one, milli: underPolicy(one.milli, policyOf?.(one.teamId) ?? "any") };
    const { milli, memoryBytes, pinnedGpuId = "", needs, teamId } = request;
    const team = policyOf === undefined ? "" : teamId;
    const key = `${milli}/${memoryBytes}/${pinnedGpuId}/${team}/${needs === undefined ? "" : JSON.stringify(needs)}`;
    if (!askers.has(key)) askers.set(key, { request, headroomMilli: Number.POSITIVE_INFINITY, policyOf });
  }
  // The smallest fit nearly everywhere: whoever fits is found at once.
  const smallestFirst = [...askers.values()].sort((a, b) => a.request.milli - b.request.milli);
  let stranded = 0;
  for (const room of roomOf(world.devices, world.holdings).values()) {
    if (room.device.state !== "open" || room.freeMilli <= 0) continue;
    if (!smallestFirst.some((asker) => fits(asker, room))) stranded += room.freeMilli;
  }
  return stranded;
}
