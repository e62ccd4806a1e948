"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useState } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { Button } from "#components/ui/button.tsx";
import { DataTable } from "#components/ui/data-table.tsx";
import { Confirm, Dialog } from "#components/ui/dialog.tsx";
import { Field } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { Remaining } from "#components/ui/time.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { useSubmit } from "#components/use-submit.ts";
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
                  Delete now
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
  const { pending, error, fields, run } = useSubmit<WorkspaceView>(["name"]);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const name = formText(new FormData(event.currentTarget), "name");
    const restored = await run(() => api("POST", `/removed-workspaces/${workspace.id}/restore`, { name }));
    if (!restored) return;
    onClose();
    toast(`${restored.name} is restored. Start it to work in it.`);
    router.refresh();
  };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={`Restore ${workspace.name}`}
      description="With its files, installed packages and settings. It is stopped at first."
    >
      <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
        <Field label="Name" name="name" required maxLength={60} defaultValue={workspace.name} error={fields.name} />
        <FormFooter error={error} pending={pending} onCancel={onClose} save="Restore workspace" saving="Restoring" />
      </form>
    </Dialog>
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
