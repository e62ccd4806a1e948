"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { Button } from "#components/ui/button.tsx";
import { DataTable } from "#components/ui/data-table.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { NameDialog } from "#components/ui/name-dialog.tsx";
import { Remaining } from "#components/ui/time.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { RemovedWorkspace, WorkspaceView } from "#server/contracts/workspace.ts";

type Asking = { what: "restore" | "delete"; workspace: RemovedWorkspace };

/** Removed workspaces whose files are kept, each to be restored or deleted. */
export function RemovedTable({ workspaces, withOwner }: { workspaces: RemovedWorkspace[]; withOwner: boolean }) {
  const [asking, setAsking] = useState<Asking>();
  const close = () => setAsking(undefined);
  return (
    <>
      <DataTable
        caption="Removed workspaces"
        rows={workspaces}
        rowKey={(row) => row.id}
        columns={[
          {
            id: "name",
            header: "Workspace",
            sort: (row) => row.name,
            cell: (row) => (
              <div className="min-w-24">
                <span className="font-medium">{row.name}</span>
                <p className="text-sm text-ink-2">
                  {row.image.title}
                  {withOwner && <span className="md:hidden">, {row.owner.name}</span>}
                </p>
              </div>
            ),
          },
          ...(withOwner
            ? [
                {
                  id: "owner",
                  header: "Owner",
                  from: "md" as const,
                  sort: (row: RemovedWorkspace) => row.owner.name,
                  cell: (row: RemovedWorkspace) => row.owner.name,
                },
              ]
            : []),
          { id: "team", header: "Team", from: "lg", sort: (row) => row.team.name, cell: (row) => row.team.name },
          {
            id: "until",
            header: "Files deleted in",
            align: "right",
            sort: (row) => row.filesKeptUntil,
            cell: (row) => <Remaining until={row.filesKeptUntil} />,
          },
          {
            id: "actions",
            header: "Restore or delete",
            quiet: true,
            align: "right",
            cell: (workspace) => (
              <div className="flex flex-wrap justify-end gap-1.5">
                <Button
                  size="sm"
                  aria-label={`Restore ${workspace.name}`}
                  onClick={() => setAsking({ what: "restore", workspace })}
                >
                  Restore
                </Button>
                <Button
                  size="sm"
                  aria-label={`Delete ${workspace.name} now`}
                  onClick={() => setAsking({ what: "delete", workspace })}
                >
                  Delete
                </Button>
              </div>
            ),
          },
        ]}
      />
      {asking?.what === "restore" && <RestoreDialog workspace={asking.workspace} onClose={close} />}
      {asking?.what === "delete" && <DeleteDialog workspace={asking.workspace} onClose={close} />}
    </>
  );
}

function RestoreDialog({ workspace, onClose }: { workspace: RemovedWorkspace; onClose: () => void }) {
  const router = useRouter();
  const toast = useToast();
  return (
    <NameDialog
      title={`Restore ${workspace.name}`}
      description="With its files, installed packages and settings. It is stopped after the restore."
      name={workspace.name}
      save="Restore workspace"
      saving="Restoring"
      send={(name) => api<WorkspaceView>("POST", `/removed-workspaces/${workspace.id}/restore`, { name })}
      onDone={({ name }) => {
        onClose();
        toast(`${name} is restored. Start it to work in it.`);
        router.refresh();
      }}
      onClose={onClose}
    />
  );
}

function DeleteDialog({ workspace, onClose }: { workspace: RemovedWorkspace; onClose: () => void }) {
  const router = useRouter();
  const toast = useToast();
  return (
    <Confirm
      open
      onOpenChange={onClose}
      title={`Delete the files of ${workspace.name}?`}
      loses="All of its files and installed packages are deleted now. This cannot be undone."
      confirmLabel="Delete files"
      pendingLabel="Deleting"
      typed={workspace.name}
      act={async () => {
        const result = await api("DELETE", `/removed-workspaces/${workspace.id}`);
        router.refresh();
        if (!result.ok) return result.error.message;
        toast(`The files of ${workspace.name} are deleted.`);
        return undefined;
      }}
    />
  );
}
