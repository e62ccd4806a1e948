"use client";

import type { FormEvent } from "react";
import { api } from "#components/api.ts";
import { enterPortal, signInLocally } from "#components/session/sign-in.ts";
import { Button } from "#components/ui/button.tsx";
import { FormError } from "#components/ui/field.tsx";
import { useSubmit } from "#components/use-submit.ts";
import type { RedeemPasswordLinkOutput } from "#server/contracts/user.ts";
import { NEW_PASSWORD, NewPasswordFields, readNewPassword } from "./new-password-fields.tsx";

/** Sets the password that a link is for, then signs in with it. */
export function NewPasswordForm({ code, email }: { code: string; email: string }) {
  const { pending, error, fields, run, fail } = useSubmit<RedeemPasswordLinkOutput>(NEW_PASSWORD);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const typed = readNewPassword(new FormData(event.currentTarget), fail);
    if (!typed) return;
    const set = await run(() => api("POST", "/password-links/redeem", { code, ...typed }));
    if (!set) return;
    const refused = await signInLocally(set.email, typed.password);
    if (refused) fail(`The new password is set. ${refused}`);
    else enterPortal("/workspaces");
  };
  return (
    <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
      <NewPasswordFields email={email} errors={fields} />
      <FormError>{error}</FormError>
      <Button type="submit" variant="primary" className="h-9 w-full" pending={pending} pendingLabel="Saving">
        Set the password
      </Button>
    </form>
  );
}
