"use client";

import { useState } from "react";
import { api } from "#components/api.ts";
import { enterPortal } from "#components/session/sign-in.ts";
import { Button } from "#components/ui/button.tsx";
import { FormError } from "#components/ui/field.tsx";

/** Joins the team of an invitation as the person who is signed in. */
export function JoinTeam({ code, teamName }: { code: string; teamName: string }) {
  const [pending, setPending] = useState(false);
  const [error, setError] = useState<string>();
  const join = async () => {
    setPending(true);
    const result = await api("POST", "/invitations/join", { code });
    if (result.ok) {
      enterPortal(`/teams/${teamName}`);
      return;
    }
    setPending(false);
    setError(result.error.message);
  };
  return (
    <div className="flex flex-col gap-4">
      <FormError>{error}</FormError>
      <Button
        variant="primary"
        className="h-9 w-full"
        pending={pending}
        pendingLabel="Joining"
        onClick={() => void join()}
      >
        Join team {teamName}
      </Button>
    </div>
  );
}
