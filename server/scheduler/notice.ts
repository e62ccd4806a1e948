/**
 * The times between the first word and the release of a lease that is taken back. It is told, and works on; when its
 * notice is over gpud moves its memory into the host, or ends its workers where that takes too long. The notebook lives
 * through all of it.
 */
import type { Notice, Policy, World } from "./types.ts";

/** The last quarter of the notice, and at least ten seconds of it, is for finishing. */
const FINISH_PART = 4;
const FINISH_LEAST_MS = 10_000;
/** How long gpud may take to park before the lease is released without. */
export const PARK_MS = 30_000;

export const DEFAULT_POLICY: Policy = { minRunMs: 5 * 60_000, noticeMs: 2 * 60_000 };

/** The times that hold for the leases of a team: its own, and the pool's where it has none. */
export function timesOf({ policy = DEFAULT_POLICY, quotas }: Pick<World, "policy" | "quotas">) {
  return (teamId: string): Policy => ({ ...policy, ...quotas.get(teamId)?.times });
}

/**
 * How long before it is needed room is begun to be made: then all that is held has had its notice and its minimum run
 * time, by the times of the pool and of those who hold something, and has been parked.
 */
export function leadOf({
  policy,
  quotas,
  holdings = [],
}: Pick<World, "policy" | "quotas"> & Partial<Pick<World, "holdings">>): number {
  let lead = Math.max(policy?.noticeMs ?? 0, policy?.minRunMs ?? 0);
  for (const teamId of new Set(holdings.map((one) => one.teamId))) {
    const { noticeMs = 0, minRunMs = 0 } = quotas.get(teamId)?.times ?? {};
    lead = Math.max(lead, noticeMs, minRunMs);
  }
  return lead + PARK_MS;
}

/** When its holder is best done with what runs, and starts nothing long: told with the notice, and nothing enforces it. */
export function finishAt(notice: Pick<Notice, "at" | "releaseAt">): number {
  const length = notice.releaseAt - notice.at;
  const finish = Math.min(length, Math.max(FINISH_LEAST_MS, Math.floor(length / FINISH_PART)));
  return notice.releaseAt - finish;
}
