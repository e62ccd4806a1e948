/** A lease as its holder knows it: whose it is, how much, and when it last worked. */
import type { TheirLease } from "#server/services/notice/words.ts";
import type { LeaseRow } from "./view.ts";

type Worked = Pick<LeaseRow, "usageAt" | "claimedAt" | "grantedAt">;

/** When a GPU of a lease last worked: who works on one of several is not idle on the others. */
export function lastWorkOf(parts: readonly Worked[]): Date {
  const times = parts.map(({ usageAt, claimedAt, grantedAt }) => (usageAt ?? claimedAt ?? grantedAt).getTime());
  return new Date(Math.max(...times));
}

type Told = Pick<LeaseRow, "noticeFor" | "releaseAt">;

/** Whether its holder has been told that its GPU server goes out of service: what is in GPU memory is lost with the lease. */
export const leavesWithServer = ({ noticeFor, releaseAt }: Told) => noticeFor === null && releaseAt !== null;

/** The same since that server takes no new leases: a notice from before it last took leases says nothing of now. */
export const knowsServerLeaves = (lease: Told & Pick<LeaseRow, "noticeAt">, closedAt: Date | null) =>
  leavesWithServer(lease) && lease.noticeAt !== null && closedAt !== null && lease.noticeAt >= closedAt;

/** Whether it also has had the time to save what is in GPU memory. */
export const hadTimeToSave = (lease: Told & Pick<LeaseRow, "noticeAt">, closedAt: Date | null, now: Date) =>
  knowsServerLeaves(lease, closedAt) && lease.releaseAt !== null && lease.releaseAt <= now;

/**
 * When a lease that does no GPU work is parked and released; null while that cannot be told, and where it ends with its
 * GPU server: who was told until when to save does not lose it before.
 */
export function idleEndOf(parts: readonly (Worked & Told & Pick<LeaseRow, "state">)[], idleMs: number): Date | null {
  if (!parts.some(({ state }) => state === "active") || parts.some(leavesWithServer)) return null;
  return new Date(lastWorkOf(parts).getTime() + idleMs);
}

/** What its holder is told about: the parts of all its devices, at least one. */
export function theirs(parts: readonly LeaseRow[]): TheirLease {
  const [first] = parts;
  if (first === undefined) throw new Error("a lease has at least one device");
  const { requestId, userId, workspaceId, gpuType, owner } = first;
  const milli = parts.reduce((sum, part) => sum + part.milli, 0);
  return { requestId, userId, workspaceId, gpuType, milli, label: owner.label };
}
