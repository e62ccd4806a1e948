"use client";

import { useRouter } from "next/navigation";
import type { FormEvent } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { Dialog } from "#components/ui/dialog.tsx";
import { Field } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { useSubmit } from "#components/use-submit.ts";
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
  const { pending, error, fields, run } = useSubmit<WorkspaceView>(["name"]);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const name = formText(new FormData(event.currentTarget), "name");
    const renamed = await run(() => api("PUT", `/workspaces/${workspace.id}/name`, { name }));
    if (!renamed) return;
    onClose();
    toast(`The workspace is called ${renamed.name} now.`);
    router.refresh();
  };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={`Rename ${workspace.name}`}
      description="Its address, files and running notebooks stay as they are."
    >
      <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
        <Field label="Name" name="name" required maxLength={60} defaultValue={workspace.name} error={fields.name} />
        <FormFooter error={error} pending={pending} onCancel={onClose} save="Rename workspace" saving="Renaming" />
      </form>
    </Dialog>
  );
}
