"use client";

import { useRouter } from "next/navigation";
import type { FormEvent } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { plural } from "#components/format.ts";
import { Dialog } from "#components/ui/dialog.tsx";
import { Field } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { useSubmit } from "#components/use-submit.ts";
import type { ChangePasswordOutput } from "#server/contracts/user.ts";
import { NEW_PASSWORD, NewPasswordFields, readNewPassword } from "./new-password-fields.tsx";

/** Changes the password of whoever is signed in, by the current one. */
export default function ChangePasswordForm({ email, onClose }: { email: string; onClose: () => void }) {
  const router = useRouter();
  const toast = useToast();
  const { pending, error, fields, run, fail } = useSubmit<ChangePasswordOutput>(["currentPassword", ...NEW_PASSWORD]);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const typed = readNewPassword(form, fail);
    if (!typed) return;
    const currentPassword = formText(form, "currentPassword");
    const changed = await run(() => api("PUT", "/me/password", { currentPassword, ...typed }));
    if (!changed) return;
    const { endedSessions } = changed;
    toast(
      endedSessions === 0
        ? "Your password was changed. You were signed in nowhere else."
        : `Your password was changed, and ${plural(endedSessions, "other sign-in session")} ended.`,
    );
    router.refresh();
    onClose();
  };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title="Change password"
      description="You stay signed in here, and are signed out in every other browser. Workspaces and notebooks go on running."
    >
      <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
        <Field
          label="Current password"
          name="currentPassword"
          type="password"
          autoComplete="current-password"
          required
          error={fields.currentPassword}
        />
        <NewPasswordFields email={email} errors={fields} />
        <FormFooter
          error={error}
          pending={pending}
          onCancel={onClose}
          save="Change password"
          saving="Changing the password"
        />
      </form>
    </Dialog>
  );
}
