/** Owners of leases: process starts, so that a reused pid or a restarted kernel is somebody else. */
import type { LeaseOwner } from "#server/contracts/lease.ts";
import type { Kind } from "#server/scheduler/types.ts";

/** Whether two records speak of the same process start. */
export function sameOwner(a: LeaseOwner, b: LeaseOwner): boolean {
  return a.pid === b.pid && a.startTime === b.startTime;
}

/** A running notebook is interactive; a program of its own is batch. */
export function kindOfWork({ kind }: LeaseOwner): Kind {
  return kind === "process" ? "batch" : "interactive";
}

/** Those who were in the report before and are not in this one: they have died in between. */
export function diedBetween(before: readonly LeaseOwner[], now: readonly LeaseOwner[]): LeaseOwner[] {
  return before.filter((owner) => !now.some((alive) => sameOwner(alive, owner)));
}

/**
 * Whether nobody will come back for the memory that a lease left parked: its workspace is stopped, or a report made
 * since it ended does not name its kernel. An owner that is never listed (a process of its own) keeps it until then.
 */
export function isAbandoned(
  lease: { owner: LeaseOwner; endedAt: Date | null },
  workspaceRuns: boolean,
  report: { reportedAt: Date; alive: LeaseOwner[] } | null,
): boolean {
  if (!workspaceRuns) return true;
  if (lease.owner.kind !== "kernel" || report === null || lease.endedAt === null) return false;
  return report.reportedAt > lease.endedAt && !report.alive.some((owner) => sameOwner(owner, lease.owner));
}
