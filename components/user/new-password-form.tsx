"use client";

import type { FormEvent } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { enterPortal, signInLocally } from "#components/session/sign-in.ts";
import { Button } from "#components/ui/button.tsx";
import { Check, Field, FormError } from "#components/ui/field.tsx";
import { useSubmit } from "#components/use-submit.ts";
import type { RedeemPasswordLinkOutput } from "#server/contracts/user.ts";

/** Sets the password that a link is for, then signs in with it. */
export function NewPasswordForm({ code, email }: { code: string; email: string }) {
  const { pending, error, fields, run, fail } = useSubmit<RedeemPasswordLinkOutput>(["password"]);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const [password, revokeTokens] = [formText(form, "password"), form.has("revokeTokens")];
    if (password !== formText(form, "again")) {
      fail("The two passwords differ. Type the same one twice.");
      return;
    }
    const set = await run(() => api("POST", "/password-links/redeem", { code, password, revokeTokens }));
    if (!set) return;
    const refused = await signInLocally(set.email, password);
    if (refused) fail(`The new password is set. ${refused}`);
    else enterPortal("/workspaces");
  };
  return (
    <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
      {/* What a password manager keeps the new password under. */}
      <input type="email" autoComplete="username" value={email} readOnly hidden />
      <Field
        label="New password"
        name="password"
        type="password"
        autoComplete="new-password"
        required
        minLength={8}
        hint="8 characters or more"
        error={fields.password}
      />
      <Field
        label="New password again"
        name="again"
        type="password"
        autoComplete="new-password"
        required
        minLength={8}
      />
      <Check
        name="revokeTokens"
        label="Revoke my access tokens, too"
        hint="Where somebody else may have known the old password. Scripts that use a token need a new one."
      />
      <FormError>{error}</FormError>
      <Button type="submit" variant="primary" className="h-9 w-full" pending={pending} pendingLabel="Saving">
        Set the password
      </Button>
    </form>
  );
}
