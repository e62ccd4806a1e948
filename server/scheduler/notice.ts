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

/** The longest notice that any team's leases have, so that what is begun so long before is done in time. */
export function longestNotice({ policy, quotas }: Pick<World, "policy" | "quotas">): number {
  const own = [...quotas.values()].flatMap(({ times }) => times?.noticeMs ?? []);
  return Math.max(policy?.noticeMs ?? 0, ...own);
}

/** When its holder is best done with what runs, and starts nothing long: told with the notice, and nothing enforces it. */
export function finishAt(notice: Pick<Notice, "at" | "releaseAt">): number {
  const length = notice.releaseAt - notice.at;
  const finish = Math.min(length, Math.max(FINISH_LEAST_MS, Math.floor(length / FINISH_PART)));
  return notice.releaseAt - finish;
}
