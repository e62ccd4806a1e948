"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { formatAmount, formatBytes } from "#components/format.ts";
import { Button } from "#components/ui/button.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { TextArea } from "#components/ui/field.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { EndLeaseAnswer, LeaseListItem } from "#server/contracts/gpu-server.ts";
import { ownerLabel } from "./owner-label.ts";

/** Ends a lease after saying whose notebook it hits and what happens there. */
export function EndLease({ lease }: { lease: LeaseListItem }) {
  const router = useRouter();
  const toast = useToast();
  const [open, setOpen] = useState(false);
  const [note, setNote] = useState("");
  const what = `${formatAmount(lease.milli)} of ${lease.deviceName}`;
  const act = async () => {
    const result = await api<EndLeaseAnswer>(
      "POST",
      `/leases/${lease.id}/end`,
      note.trim() ? { note: note.trim() } : {},
    );
    router.refresh();
    if (!result.ok) return result.error.message;
    toast(`The lease of ${what} ${result.data.state === "ended" ? "has ended" : "is ending"}.`);
    return undefined;
  };
  return (
    <>
      <Button
        size="sm"
        disabled={lease.state === "ending"}
        onClick={() => setOpen(true)}
        aria-label={`End lease of ${what}, ${lease.userName}`}
      >
        End lease
      </Button>
      <Confirm
        open={open}
        onOpenChange={setOpen}
        title={`End ${lease.userName}'s lease of ${what}?`}
        loses={
          <>
            <strong className="font-medium text-ink">{ownerLabel(lease)}</strong> in workspace {lease.workspaceName}{" "}
            gets a clear error at its next GPU call. The notebook lives on and can attach again, but{" "}
            {lease.usedMemoryBytes > 0
              ? `the ${formatBytes(lease.usedMemoryBytes)} it holds in GPU memory are lost.`
              : "whatever it holds in GPU memory is lost."}
          </>
        }
        confirmLabel="End lease"
        pendingLabel="Ending"
        act={act}
      >
        <TextArea
          label="Message to the notebook (optional)"
          value={note}
          maxLength={200}
          onChange={(event) => setNote(event.target.value)}
        />
      </Confirm>
    </>
  );
}
