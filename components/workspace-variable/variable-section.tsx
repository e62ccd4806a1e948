"use client";

import { useRouter } from "next/navigation";
import { lazy, useState } from "react";
import { api } from "#components/api.ts";
import { Button } from "#components/ui/button.tsx";
import { DataTable } from "#components/ui/data-table.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { DialogButton } from "#components/ui/dialog-button.tsx";
import { Section } from "#components/ui/page.tsx";
import { Badge } from "#components/ui/state.tsx";
import { RelativeTime } from "#components/ui/time.tsx";
import type { WorkspaceVariable, WorkspaceVariableList } from "#server/contracts/workspace-variable.ts";

const VariableForm = lazy(() => import("./variable-form.tsx"));

/** A workspace's environment variables and secrets, for its owner. */
export function VariableSection({ workspaceId, list }: { workspaceId: string; list: WorkspaceVariableList }) {
  return (
    <Section
      title="Variables and secrets"
      detail="Environment variables of every notebook and terminal. A secret is stored encrypted and never shown again."
      actions={
        <DialogButton dialog={(close) => <VariableForm workspaceId={workspaceId} onClose={close} />}>
          Add variable
        </DialogButton>
      }
    >
      {list.restartNeeded && (
        <p className="mb-2 rounded-md bg-warn-soft px-3 py-2 text-sm text-warn">
          Changed since this workspace started: restart it to use the new values.
        </p>
      )}
      <DataTable
        caption="Variables"
        rows={list.variables}
        rowKey={(row) => row.name}
        filter={list.variables.length > 8 ? (row) => row.name : undefined}
        columns={[
          { id: "name", header: "Name", sort: (row) => row.name, cell: (row) => <code>{row.name}</code> },
          {
            id: "value",
            header: "Value",
            cell: (row) =>
              row.secret ? <Badge>secret</Badge> : <span className="break-all">{row.value ?? "cannot be read"}</span>,
          },
          {
            id: "changed",
            header: "Changed",
            align: "right",
            from: "sm",
            sort: (row) => row.updatedAt,
            cell: (row) => <RelativeTime at={row.updatedAt} />,
          },
          {
            id: "actions",
            header: "Change or remove",
            quiet: true,
            align: "right",
            cell: (row) => <VariableActions workspaceId={workspaceId} variable={row} />,
          },
        ]}
      />
    </Section>
  );
}

function VariableActions({ workspaceId, variable }: { workspaceId: string; variable: WorkspaceVariable }) {
  const router = useRouter();
  const [removing, setRemoving] = useState(false);
  const remove = async () => {
    const result = await api("DELETE", `/workspaces/${workspaceId}/variables/${variable.name}`);
    router.refresh();
    return result.ok ? undefined : result.error.message;
  };
  return (
    <div className="flex justify-end gap-1.5">
      <DialogButton
        size="sm"
        aria-label={`Change ${variable.name}`}
        dialog={(close) => <VariableForm workspaceId={workspaceId} variable={variable} onClose={close} />}
      >
        Change
      </DialogButton>
      <Button size="sm" onClick={() => setRemoving(true)} aria-label={`Remove ${variable.name}`}>
        Remove
      </Button>
      <Confirm
        open={removing}
        onOpenChange={setRemoving}
        title={`Remove ${variable.name}?`}
        loses={variable.secret ? "Its value is lost: nobody can read it back." : "Its value is lost."}
        confirmLabel="Remove variable"
        pendingLabel="Removing"
        act={remove}
      />
    </div>
  );
}
