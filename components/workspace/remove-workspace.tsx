"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { plural } from "#components/format.ts";
import { Button } from "#components/ui/button.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { WorkspaceView } from "#server/contracts/workspace.ts";
import { leaseLoss } from "./lease-loss.ts";

/** Asks, then removes the workspace and goes back to the list. */
export function RemoveWorkspaceDialog({
  workspace,
  open,
  onOpenChange,
}: {
  workspace: WorkspaceView;
  open: boolean;
  onOpenChange: (open: boolean) => void;
}) {
  const router = useRouter();
  const toast = useToast();
  const days = workspace.filesKeptDays;
  const remove = async () => {
    const result = await api("DELETE", `/workspaces/${workspace.id}`);
    if (!result.ok) return result.error.message;
    toast(
      days > 0 ? `${workspace.name} is removed. Restore it from the list "Removed".` : `${workspace.name} is removed.`,
    );
    router.push("/workspaces");
    router.refresh();
    return undefined;
  };
  return (
    <Confirm
      open={open}
      onOpenChange={onOpenChange}
      title={`Remove ${workspace.name}?`}
      loses={
        <>
          Its notebooks end. {leaseLoss(workspace)}
          {days > 0
            ? `Files and installed packages are kept for ${plural(days, "day")}: until then it can be restored.`
            : "All of its files and installed packages are deleted. This cannot be undone."}
        </>
      }
      confirmLabel="Remove workspace"
      pendingLabel="Removing"
      typed={workspace.name}
      act={remove}
    />
  );
}

/** The button of the settings tab. */
export function RemoveWorkspace({ workspace }: { workspace: WorkspaceView }) {
  const [asking, setAsking] = useState(false);
  return (
    <>
      <Button variant="danger" onClick={() => setAsking(true)}>
        Remove workspace
      </Button>
      <RemoveWorkspaceDialog workspace={workspace} open={asking} onOpenChange={setAsking} />
    </>
  );
}
