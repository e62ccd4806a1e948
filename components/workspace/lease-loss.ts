import { formatAmount } from "#components/format.ts";
import type { WorkspaceView } from "#server/contracts/workspace.ts";

/** The sentence that names the GPU which goes back, or nothing. */
export function leaseLoss(workspace: WorkspaceView): string {
  const held = workspace.leases.map(
    (lease) => `${formatAmount(lease.milli)} ${lease.gpuType}${lease.label ? ` in ${lease.label}` : ""}`,
  );
  return held.length > 0 ? `Its GPU (${held.join(", ")}) goes back to the pool. ` : "";
}
