"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useState } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { Button } from "#components/ui/button.tsx";
import { DataTable } from "#components/ui/data-table.tsx";
import { Confirm, Dialog } from "#components/ui/dialog.tsx";
import { Check, Field, TextArea } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { Section } from "#components/ui/page.tsx";
import { Badge } from "#components/ui/state.tsx";
import { RelativeTime } from "#components/ui/time.tsx";
import { useSubmit } from "#components/use-submit.ts";
import type { WorkspaceVariable, WorkspaceVariableList } from "#server/contracts/workspace-variable.ts";

/** A workspace's environment variables and secrets, for its owner. */
export function VariableSection({ workspaceId, list }: { workspaceId: string; list: WorkspaceVariableList }) {
  const [adding, setAdding] = useState(false);
  return (
    <Section
      title="Variables and secrets"
      detail="Environment variables of every notebook and terminal. A secret is stored encrypted and never shown again."
      actions={<Button onClick={() => setAdding(true)}>Add variable</Button>}
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
      <VariableDialog workspaceId={workspaceId} open={adding} onOpenChange={setAdding} />
    </Section>
  );
}

function VariableActions({ workspaceId, variable }: { workspaceId: string; variable: WorkspaceVariable }) {
  const router = useRouter();
  const [asking, setAsking] = useState<"change" | "remove">();
  const remove = async () => {
    const result = await api("DELETE", `/workspaces/${workspaceId}/variables/${variable.name}`);
    router.refresh();
    return result.ok ? undefined : result.error.message;
  };
  return (
    <div className="flex justify-end gap-1.5">
      <Button size="sm" onClick={() => setAsking("change")} aria-label={`Change ${variable.name}`}>
        Change
      </Button>
      <Button size="sm" onClick={() => setAsking("remove")} aria-label={`Remove ${variable.name}`}>
        Remove
      </Button>
      <VariableDialog
        workspaceId={workspaceId}
        variable={variable}
        open={asking === "change"}
        onOpenChange={(next) => setAsking(next ? "change" : undefined)}
      />
      <Confirm
        open={asking === "remove"}
        onOpenChange={(next) => setAsking(next ? "remove" : undefined)}
        title={`Remove ${variable.name}?`}
        loses={variable.secret ? "Its value is lost: nobody can read it back." : "Its value is lost."}
        confirmLabel="Remove variable"
        pendingLabel="Removing"
        act={remove}
      />
    </div>
  );
}

function VariableDialog({
  workspaceId,
  variable,
  open,
  onOpenChange,
}: {
  workspaceId: string;
  variable?: WorkspaceVariable;
  open: boolean;
  onOpenChange: (open: boolean) => void;
}) {
  const router = useRouter();
  const { pending, error, fields, run } = useSubmit<WorkspaceVariableList>(["name", "value"]);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const name = variable?.name ?? formText(form, "name");
    const secret = variable?.secret ?? form.get("secret") !== null;
    const path = `/workspaces/${workspaceId}/variables/${encodeURIComponent(name)}`;
    const done = await run(() => api("PUT", path, { value: form.get("value"), secret }));
    if (!done) return;
    onOpenChange(false);
    router.refresh();
  };
  return (
    <Dialog
      open={open}
      onOpenChange={onOpenChange}
      title={variable ? `Change ${variable.name}` : "Add a variable"}
      description="Notebooks have it after the next start of the workspace."
    >
      <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
        {!variable && (
          <Field
            label="Name"
            name="name"
            required
            maxLength={100}
            placeholder="API_KEY"
            autoComplete="off"
            spellCheck={false}
            error={fields.name}
          />
        )}
        {variable?.secret ? (
          <Field label="New value" name="value" type="password" required autoComplete="off" error={fields.value} />
        ) : (
          <TextArea
            label="Value"
            name="value"
            required
            spellCheck={false}
            defaultValue={variable?.value ?? ""}
            error={fields.value}
          />
        )}
        {!variable && (
          <Check
            label="Secret"
            name="secret"
            hint="Its value is never shown again: not here, not in the API, logs or audit."
          />
        )}
        <FormFooter error={error} pending={pending} onCancel={() => onOpenChange(false)} />
      </form>
    </Dialog>
  );
}
