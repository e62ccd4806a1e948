import type { LeaseListItem } from "#server/contracts/gpu-server.ts";

/** What the notebook is called, or what else holds the lease. */
export function ownerLabel(lease: Pick<LeaseListItem, "owner">): string {
  return lease.owner.label ?? (lease.owner.kind === "process" ? `process ${lease.owner.pid}` : "notebook");
}
