"use client";

import { lazy } from "react";
import { formatAmount } from "#components/format.ts";
import { DialogButton } from "#components/ui/dialog-button.tsx";
import type { LeaseListItem } from "#server/contracts/gpu-server.ts";

const EndLeaseDialog = lazy(() => import("./end-lease-dialog.tsx"));

/** Ends a lease, after a question. */
export function EndLease({ lease }: { lease: LeaseListItem }) {
  return (
    <DialogButton
      size="sm"
      disabled={lease.state === "ending"}
      aria-label={`End lease of ${formatAmount(lease.milli)} of ${lease.deviceName}, ${lease.userName}`}
      dialog={(close) => <EndLeaseDialog lease={lease} onClose={close} />}
    >
      End lease
    </DialogButton>
  );
}
