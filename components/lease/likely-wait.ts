import type { WaitingRequest } from "#server/contracts/lease-board.ts";

type Waits = Pick<WaitingRequest, "teamId" | "gpuType" | "likelySeconds">;

/**
 * In how many seconds a request of a team for a GPU type would likely be granted: as the last one of its own that waits,
 * because what holds up one team need not hold up another. Undefined when none of it tells.
 */
export function likelyWait(requests: readonly Waits[], of: Pick<Waits, "teamId" | "gpuType">): number | undefined {
  const same = ({ teamId, gpuType, likelySeconds }: Waits) =>
    teamId === of.teamId && gpuType === of.gpuType && likelySeconds !== null;
  return requests.findLast(same)?.likelySeconds ?? undefined;
}
