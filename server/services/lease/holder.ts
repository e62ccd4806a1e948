/** A lease as its holder knows it: whose it is, how much, and when it last worked. */
import type { TheirLease } from "#server/services/notice/words.ts";
import type { LeaseRow } from "./view.ts";

/** When the GPU of a lease last worked. */
export function lastWorkOf(lease: Pick<LeaseRow, "usageAt" | "claimedAt" | "grantedAt">): Date {
  return lease.usageAt ?? lease.claimedAt ?? lease.grantedAt;
}

/** What its holder is told about: the parts of all its devices, at least one. */
export function theirs(parts: readonly LeaseRow[]): TheirLease {
  const [first] = parts;
  if (first === undefined) throw new Error("a lease has at least one device");
  const { requestId, userId, workspaceId, gpuType, owner } = first;
  const milli = parts.reduce((sum, part) => sum + part.milli, 0);
  return { requestId, userId, workspaceId, gpuType, milli, label: owner.label };
}
