"use client";

import type { FormEvent } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { enterPortal, signInLocally } from "#components/session/sign-in.ts";
import { Button } from "#components/ui/button.tsx";
import { Field, FormError } from "#components/ui/field.tsx";
import { useSubmit } from "#components/use-submit.ts";

/** Accepts an invitation: a name and a password make the account, then it signs in. */
export function AcceptInviteForm({ code }: { code: string }) {
  const { pending, error, fields, run, fail } = useSubmit<{ email: string }>(["name", "password"]);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const password = formText(form, "password");
    const made = await run(() => api("POST", "/invitations/accept", { code, name: formText(form, "name"), password }));
    if (!made) return;
    const refused = await signInLocally(made.email, password);
    if (refused) fail(`The account is made. ${refused}`);
    else enterPortal("/workspaces");
  };
  return (
    <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
      <Field label="Name" name="name" autoComplete="name" required error={fields.name} />
      <Field
        label="Password"
        name="password"
        type="password"
        autoComplete="new-password"
        required
        minLength={8}
        hint="8 characters or more"
        error={fields.password}
      />
      <FormError>{error}</FormError>
      <Button
        type="submit"
        variant="primary"
        className="h-9 w-full"
        pending={pending}
        pendingLabel="Making the account"
      >
        Accept invitation
      </Button>
    </form>
  );
}
