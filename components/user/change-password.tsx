"use client";

import { lazy } from "react";
import { DialogButton } from "#components/ui/dialog-button.tsx";

const ChangePasswordForm = lazy(() => import("./change-password-form.tsx"));

/** Opens the form for a new password of one's own. */
export function ChangePassword({ email, initiallyOpen }: { email: string; initiallyOpen: boolean }) {
  return (
    <DialogButton
      size="sm"
      initiallyOpen={initiallyOpen}
      dialog={(close) => <ChangePasswordForm email={email} onClose={close} />}
    >
      Change password
    </DialogButton>
  );
}
