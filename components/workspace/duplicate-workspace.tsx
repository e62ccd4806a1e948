"use client";

import { useRouter } from "next/navigation";
import type { FormEvent } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { Dialog } from "#components/ui/dialog.tsx";
import { Field } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { useSubmit } from "#components/use-submit.ts";
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
  const { pending, error, fields, run } = useSubmit<WorkspaceView>(["name"]);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const name = formText(new FormData(event.currentTarget), "name");
    const made = await run(() => api("POST", `/workspaces/${workspace.id}/duplicate`, { name }));
    if (made) router.push(`/workspaces/${made.id}`);
  };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={`Duplicate ${workspace.name}`}
      description="The same environment, amounts, idle limit, variables and datasets. Files and installed packages are not copied."
    >
      <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
        <Field
          label="Name"
          name="name"
          required
          maxLength={60}
          defaultValue={`${workspace.name.slice(0, 55)} copy`}
          error={fields.name}
        />
        <FormFooter error={error} pending={pending} onCancel={onClose} save="Launch the duplicate" saving="Launching" />
      </form>
    </Dialog>
  );
}
