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

type Props = {
  lease: LeaseListItem;
  /** Whoever looks holds it: it is given back as by `%gpu detach`. */
  own: boolean;
  onClose: () => void;
};

/** Says whose notebook the end of a lease hits and what happens there, and ends it. */
export default function EndLeaseDialog({ lease, own, onClose }: Props) {
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
    const ended = result.data.state === "ended";
    if (own) toast(`${what} ${ended ? "is given back" : "is being given back"}.`);
    else toast(`The lease of ${what} ${ended ? "has ended" : "is ending"}.`);
    return undefined;
  };
  return (
    <Confirm
      open
      onOpenChange={onClose}
      title={own ? `Give back ${what}?` : `End ${lease.userName}'s lease of ${what}?`}
      loses={
        <>
          <strong className="font-medium text-ink">{ownerLabel(lease)}</strong> in workspace {lease.workspaceName} gets
          a clear error at its next GPU call. The notebook lives on and can attach again
          {own && !lease.leavesWithServer ? `: ${parked(lease)}` : `, but ${lost(lease)}`}
        </>
      }
      confirmLabel={own ? "Give back" : "End lease"}
      pendingLabel={own ? "Giving back" : "Ending"}
      danger={!own}
      act={act}
    >
      {!own && (
        <TextArea
          label="Message to the notebook (optional)"
          value={note}
          maxLength={200}
          onChange={(event) => setNote(event.target.value)}
        />
      )}
    </Confirm>
  );
}

const held = ({ usedMemoryBytes }: LeaseListItem) =>
  usedMemoryBytes > 0 ? `the ${formatBytes(usedMemoryBytes)} it holds` : "whatever it holds";

const lost = (lease: LeaseListItem) => `${held(lease)} in GPU memory is lost.`;

/** Detaching parks what is allocated, while the server has room for it. */
const parked = (lease: LeaseListItem) =>
  `${held(lease)} in GPU memory is parked on ${lease.serverName}, as by %gpu detach, and there again after %gpu attach. ` +
  "Where that server has no room for it, it is lost.";
