"use client";

import { useRouter } from "next/navigation";
import { api } from "#components/api.ts";
import { NameDialog } from "#components/ui/name-dialog.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { WorkspaceView } from "#server/contracts/workspace.ts";

/** Asks for another name; everything else of the workspace stays. */
export default function RenameWorkspaceDialog({
  workspace,
  onClose,
}: {
  workspace: WorkspaceView;
  onClose: () => void;
}) {
  const router = useRouter();
  const toast = useToast();
  return (
    <NameDialog
      title={`Rename ${workspace.name}`}
      description="Its address, files and running notebooks stay as they are."
      name={workspace.name}
      save="Rename workspace"
      saving="Renaming"
      send={(name) => api<WorkspaceView>("PUT", `/workspaces/${workspace.id}/name`, { name })}
      onDone={({ name }) => {
        onClose();
        toast(`The workspace is called ${name} now.`);
        router.refresh();
      }}
      onClose={onClose}
    />
  );
}
