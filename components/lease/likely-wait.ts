import { formatDuration } from "#components/format.ts";
import type { WaitingRequest } from "#server/contracts/lease-board.ts";

type Waits = Pick<WaitingRequest, "teamId" | "gpuType" | "likelySeconds" | "soonestSeconds">;

export type Wait = { likelySeconds: number; soonestSeconds: number | null };

/**
 * How long a request of a team for a GPU type would likely wait: like its last waiting request, because the
 * blocking reason can differ between teams. Undefined without an estimate.
 */
export function likelyWait(requests: readonly Waits[], of: Pick<Waits, "teamId" | "gpuType">): Wait | undefined {
  for (const { teamId, gpuType, likelySeconds, soonestSeconds } of requests.toReversed()) {
    if (teamId === of.teamId && gpuType === of.gpuType && likelySeconds !== null) {
      return { likelySeconds, soonestSeconds };
    }
  }
  return undefined;
}

/** `about 18 min`; `19 min (idle limit) to 3 h 59 min (time limit)` while the lease that holds the GPU works. */
export function formatWait({ likelySeconds, soonestSeconds }: Wait): string {
  const likely = formatDuration(likelySeconds * 1000);
  return soonestSeconds === null
    ? `about ${likely}`
    : `${formatDuration(soonestSeconds * 1000)} (idle limit) to ${likely} (time limit)`;
}
