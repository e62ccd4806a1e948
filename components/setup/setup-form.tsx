"use client";

import type { FormEvent } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { enterPortal, signInLocally } from "#components/session/sign-in.ts";
import { Button } from "#components/ui/button.tsx";
import { Field, FormError } from "#components/ui/field.tsx";
import { useSubmit } from "#components/use-submit.ts";

/** The one form of set-up: it makes the first admin and the team "demo", and signs in. */
export function SetupForm({ code }: { code: string }) {
  const { pending, error, fields, run, fail } = useSubmit<{ userId: string }>(["name", "email", "password"]);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => formText(form, name);
    const made = await run(() =>
      api("POST", "/setup", { code, name: text("name"), email: text("email"), password: text("password") }),
    );
    if (!made) return;
    const refused = await signInLocally(text("email"), text("password"));
    if (refused) fail(`Set-up is done. ${refused}`);
    else enterPortal("/workspaces");
  };
  return (
    <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
      <Field label="Name" name="name" autoComplete="name" required error={fields.name} />
      <Field label="E-mail" name="email" type="email" autoComplete="username" required error={fields.email} />
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
      <Button type="submit" variant="primary" className="h-9 w-full" pending={pending} pendingLabel="Setting up">
        Set up Sluice
      </Button>
    </form>
  );
}
