"use client";

import { useRouter } from "next/navigation";
import type { FormEvent } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { Dialog } from "#components/ui/dialog.tsx";
import { Check, Field, TextArea } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { useEdit } from "#components/use-edit.ts";
import type { WorkspaceVariable, WorkspaceVariableList } from "#server/contracts/workspace-variable.ts";

/** A new variable or secret of a workspace, or a new value of one that is there. */
export default function VariableForm({
  workspaceId,
  variable,
  onClose,
}: {
  workspaceId: string;
  variable?: WorkspaceVariable;
  onClose: () => void;
}) {
  const router = useRouter();
  const known = variable ? ["value"] : ["name", "value"];
  const { pending, error, fields, run, version } = useEdit<WorkspaceVariableList>(known, variable?.version ?? 0);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const name = variable?.name ?? formText(form, "name");
    const secret = variable?.secret ?? form.get("secret") !== null;
    const path = `/workspaces/${workspaceId}/variables/${encodeURIComponent(name)}`;
    const done = await run(() => api("PUT", path, { value: form.get("value"), secret, version }));
    if (!done) return;
    onClose();
    router.refresh();
  };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={variable ? `Change ${variable.name}` : "Add a variable"}
      description="Notebooks get it at the next start of the workspace."
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
        <FormFooter error={error} pending={pending} onCancel={onClose} />
      </form>
    </Dialog>
  );
}
