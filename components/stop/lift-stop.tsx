"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { Button } from "#components/ui/button.tsx";
import { useToast } from "#components/ui/toast.tsx";

/** Ends a stop: the queue goes on. */
export function LiftStop({ id, who }: { id: string; who: string }) {
  const router = useRouter();
  const toast = useToast();
  const [pending, setPending] = useState(false);
  return (
    <Button
      size="sm"
      pending={pending}
      pendingLabel="Lifting"
      aria-label={`Lift the stop for ${who}`}
      onClick={() => {
        setPending(true);
        void api("DELETE", `/stops/${id}`).then((result) => {
          setPending(false);
          toast(result.ok ? "The stop is lifted: the queue goes on." : result.error.message, result.ok ? "ok" : "bad");
          router.refresh();
        });
      }}
    >
      Lift
    </Button>
  );
}
