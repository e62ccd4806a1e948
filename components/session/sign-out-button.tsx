"use client";

import { useState } from "react";
import { Button } from "#components/ui/button.tsx";
import { signOut } from "./sign-out.ts";

/** Ends this browser's session. */
export function SignOutButton() {
  const [pending, setPending] = useState(false);
  return (
    <Button
      size="sm"
      pending={pending}
      pendingLabel="Signing out"
      onClick={() => {
        setPending(true);
        void signOut();
      }}
    >
      Sign out
    </Button>
  );
}
