"use client";

import { formatAmount } from "#components/format.ts";
import { Age, Remaining } from "#components/ui/time.tsx";
import type { WorkspaceView } from "#server/contracts/workspace.ts";

/** The two clocks: how long the workspace has run, and how long its GPU may stay. */
export function WorkspaceTimers({ workspace }: { workspace: WorkspaceView }) {
  const [next] = [...workspace.leases].sort((a, b) => a.expiresAt.localeCompare(b.expiresAt));
  return (
    <>
      {workspace.observed === "running" && workspace.startedAt && (
        <span>
          running for <Age from={workspace.startedAt} />
        </span>
      )}
      {next ? (
        <span>
          {formatAmount(workspace.leases.reduce((sum, lease) => sum + lease.milli, 0))} {next.gpuType}, ends in{" "}
          <Remaining until={next.expiresAt} />
        </span>
      ) : (
        workspace.observed === "running" && <span>no GPU attached</span>
      )}
    </>
  );
}
