"use client";

import { type ComponentProps, lazy } from "react";
import { DialogButton } from "#components/ui/dialog-button.tsx";

const InvitationForm = lazy(() => import("./invitation-form.tsx"));

/** Opens the form that invites a person. */
export function InvitePerson({
  variant = "secondary",
  ...props
}: Omit<ComponentProps<typeof InvitationForm>, "onClose"> & { variant?: "primary" | "secondary" }) {
  return (
    <DialogButton variant={variant} dialog={(close) => <InvitationForm {...props} onClose={close} />}>
      Invite
    </DialogButton>
  );
}
