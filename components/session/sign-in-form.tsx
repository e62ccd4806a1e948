"use client";

import { type FormEvent, useState } from "react";
import { formText } from "#components/form-text.ts";
import { Button } from "#components/ui/button.tsx";
import { Field, FormError } from "#components/ui/field.tsx";
import { enterPortal, signInLocally, signInWithProvider } from "./sign-in.ts";

/** Local account, and the organisation's own sign-in when it is set up. */
export function SignInForm({ next, provider, refused }: { next: string; provider?: string; refused?: string }) {
  const [pending, setPending] = useState<"local" | "provider">();
  const [error, setError] = useState(refused);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    setPending("local");
    setError(undefined);
    const sentence = await signInLocally(formText(form, "email"), formText(form, "password"));
    if (sentence) {
      setPending(undefined);
      setError(sentence);
    } else {
      enterPortal(next);
    }
  };
  return (
    <div className="flex flex-col gap-4">
      {provider && (
        <>
          <Button
            className="h-9 w-full"
            pending={pending === "provider"}
            pendingLabel={`Going to ${provider}`}
            onClick={() => {
              setPending("provider");
              void signInWithProvider(next);
            }}
          >
            Sign in with {provider}
          </Button>
          <p className="flex items-center gap-3 text-sm text-ink-2 before:h-px before:grow before:bg-line after:h-px after:grow after:bg-line">
            or with a local account
          </p>
        </>
      )}
      <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
        <Field label="E-mail" name="email" type="email" autoComplete="username" required />
        <Field label="Password" name="password" type="password" autoComplete="current-password" required />
        <FormError>{error}</FormError>
        <Button
          type="submit"
          variant="primary"
          className="h-9 w-full"
          pending={pending === "local"}
          pendingLabel="Signing in"
        >
          Sign in
        </Button>
      </form>
      <p className="text-sm text-ink-2">
        Password forgotten? Ask an admin for a link: with it you choose a new one, and nothing of yours is lost.
      </p>
    </div>
  );
}
