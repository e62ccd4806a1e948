"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { Button } from "#components/ui/button.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { useToast } from "#components/ui/toast.tsx";

/** Checks a proposal again, or withdraws it. */
export function ProposalActions({ id, title, checked }: { id: string; title: string; checked: boolean }) {
  const router = useRouter();
  const toast = useToast();
  const [pending, setPending] = useState(false);
  const [asking, setAsking] = useState(false);
  const again = async () => {
    setPending(true);
    const result = await api("POST", `/image-versions/${id}/check`);
    setPending(false);
    if (!result.ok) toast(result.error.message, "bad");
    router.refresh();
  };
  const withdraw = async () => {
    const result = await api("DELETE", `/image-versions/${id}`);
    if (!result.ok) return result.error.message;
    router.push("/environments");
    router.refresh();
    return undefined;
  };
  return (
    <>
      {checked && (
        <Button onClick={() => void again()} pending={pending} pendingLabel="Asking">
          Check again
        </Button>
      )}
      <Button onClick={() => setAsking(true)}>Withdraw proposal</Button>
      <Confirm
        open={asking}
        onOpenChange={setAsking}
        title={`Withdraw ${title}?`}
        loses="The proposal and its check logs are deleted, and a running check ends. No workspace uses it."
        confirmLabel="Withdraw proposal"
        pendingLabel="Withdrawing"
        act={withdraw}
      />
    </>
  );
}
