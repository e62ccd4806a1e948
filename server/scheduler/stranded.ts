/** What is free and serves nobody. */
import { coTenancyIn, underPolicy } from "./allowed.ts";
import { type Asker, fits } from "./placement.ts";
import { roomOf } from "./room.ts";
import { promisesNow } from "./share.ts";
import type { Waiting, World } from "./types.ts";

/**
 * What is free on devices that take leases, thousandths, in pieces that serve none of those who wait: too small for each
 * of them, without what they need, or on a card that its holder's policy keeps for itself. While nobody waits, what no
 * team may take the least part of. What quotas leave to whom does not matter here: this is what placement has left over.
 */
export function strandedMilli(world: World): number {
  const { quotas } = promisesNow(world);
  const policyOf = coTenancyIn(quotas);
  const waits = world.queue.length > 0 ? world.queue : [...quotas.keys()].map(leastOf);
  const askers = new Map<string, Asker>();
  for (const one of waits) {
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

/** The least that a team could ask for. */
function leastOf(teamId: string): Waiting {
  const nobody = { userId: "", who: "", guaranteedOnly: false, createdAt: 0, lengthMs: 0 };
  return { requestId: teamId, teamId, milli: 1, memoryBytes: 0, ...nobody };
}
