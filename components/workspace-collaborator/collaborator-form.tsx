"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useState } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { Dialog } from "#components/ui/dialog.tsx";
import { Field, Select } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { useEdit } from "#components/use-edit.ts";
import type { WorkspaceView } from "#server/contracts/workspace.ts";
import type { WorkspaceCollaborators } from "#server/contracts/workspace-collaborator.ts";

type Collaborator = WorkspaceCollaborators["collaborators"][number];

const MEANS = {
  viewer: "Sees the files and the saved results of notebooks. Changes and runs nothing, and opens no terminal.",
  editor:
    "Works in notebooks and terminals as you do, on your GPUs and your team's quota. What runs there can read the " +
    "workspace's variables, secrets too: invite only whom you would tell them. Cannot share or remove it.",
};

/** Whom to let in and as what; for somebody who is in, only as what. */
export default function CollaboratorForm({
  workspace,
  collaborator,
  onClose,
}: {
  workspace: WorkspaceView;
  collaborator?: Collaborator;
  onClose: () => void;
}) {
  const router = useRouter();
  const toast = useToast();
  const known = collaborator ? ["role"] : ["person", "role"];
  const { pending, error, fields, run, version } = useEdit<WorkspaceCollaborators, number | undefined>(
    known,
    collaborator?.version,
  );
  const [role, setRole] = useState<keyof typeof MEANS>(collaborator?.role ?? "viewer");
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const person = collaborator?.email ?? formText(new FormData(event.currentTarget), "person");
    const done = await run(() => api("POST", `/workspaces/${workspace.id}/collaborators`, { person, role, version }));
    if (!done) return;
    toast(collaborator ? `${collaborator.name} is now ${role}.` : "Invited: they find it in their notices.");
    onClose();
    router.refresh();
  };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={collaborator ? `Role of ${collaborator.name}` : `Invite somebody to ${workspace.name}`}
      description={collaborator ? undefined : "Anybody with an account here. They are told at once."}
    >
      <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
        {!collaborator && (
          <Field
            label="Name or e-mail"
            name="person"
            required
            maxLength={254}
            autoComplete="off"
            spellCheck={false}
            error={fields.person}
          />
        )}
        <Select
          label="Role"
          name="role"
          value={role}
          onChange={(event) => setRole(event.currentTarget.value === "editor" ? "editor" : "viewer")}
          error={fields.role}
        >
          <option value="viewer">viewer</option>
          <option value="editor">editor</option>
        </Select>
        <p className="text-sm text-ink-2" aria-live="polite">
          {MEANS[role]}
        </p>
        <FormFooter
          error={error}
          pending={pending}
          onCancel={onClose}
          save={collaborator ? "Save" : "Invite"}
          saving={collaborator ? "Saving" : "Inviting"}
        />
      </form>
    </Dialog>
  );
}
