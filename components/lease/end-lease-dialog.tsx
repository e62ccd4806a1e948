"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { formatAmount, formatBytes } from "#components/format.ts";
import { Confirm } from "#components/ui/dialog.tsx";
import { TextArea } from "#components/ui/field.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { EndLeaseAnswer, LeaseListItem } from "#server/contracts/gpu-server.ts";
import { ownerLabel } from "./owner-label.ts";

/** Says whose notebook the end of a lease hits and what happens there, and ends it. */
export default function EndLeaseDialog({ lease, onClose }: { lease: LeaseListItem; onClose: () => void }) {
  const router = useRouter();
  const toast = useToast();
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
    <Confirm
      open
      onOpenChange={onClose}
      title={`End ${lease.userName}'s lease of ${what}?`}
      loses={
        <>
          <strong className="font-medium text-ink">{ownerLabel(lease)}</strong> in workspace {lease.workspaceName} gets
          a clear error at its next GPU call. The notebook lives on and can attach again, but{" "}
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
  );
}
