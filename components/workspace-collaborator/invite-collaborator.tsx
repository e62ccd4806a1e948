"use client";

import { type ComponentProps, lazy } from "react";
import { DialogButton } from "#components/ui/dialog-button.tsx";

const CollaboratorForm = lazy(() => import("./collaborator-form.tsx"));

type FormProps = Omit<ComponentProps<typeof CollaboratorForm>, "onClose">;

/** Opens the form that lets somebody in. */
export function InviteCollaborator({ workspace }: Pick<FormProps, "workspace">) {
  return (
    <DialogButton variant="primary" dialog={(close) => <CollaboratorForm workspace={workspace} onClose={close} />}>
      Invite
    </DialogButton>
  );
}

/** Opens the same form for what somebody may do. */
export function ChangeRole({ workspace, collaborator }: Required<FormProps>) {
  return (
    <DialogButton
      size="sm"
      aria-label={`Change the role of ${collaborator.name}`}
      dialog={(close) => <CollaboratorForm workspace={workspace} collaborator={collaborator} onClose={close} />}
    >
      Change
    </DialogButton>
  );
}
