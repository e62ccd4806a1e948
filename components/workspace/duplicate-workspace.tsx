"use client";

import { useRouter } from "next/navigation";
import { api } from "#components/api.ts";
import { NameDialog } from "#components/ui/name-dialog.tsx";
import type { WorkspaceView } from "#server/contracts/workspace.ts";

/** Asks for a name, launches another workspace like this one, and goes there. */
export default function DuplicateWorkspaceDialog({
  workspace,
  onClose,
}: {
  workspace: WorkspaceView;
  onClose: () => void;
}) {
  const router = useRouter();
  return (
    <NameDialog
      title={`Duplicate ${workspace.name}`}
      description="The same environment, amounts, idle limit, variables and datasets. Files and installed packages are not copied."
      name={`${workspace.name.slice(0, 55)} copy`}
      save="Launch the duplicate"
      saving="Launching"
      send={(name) => api<WorkspaceView>("POST", `/workspaces/${workspace.id}/duplicate`, { name })}
      onDone={({ id }) => router.push(`/workspaces/${id}`)}
      onClose={onClose}
    />
  );
}
