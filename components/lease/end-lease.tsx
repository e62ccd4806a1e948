"use client";

import { lazy } from "react";
import { formatAmount } from "#components/format.ts";
import { useIsMe } from "#components/session/me.tsx";
import { DialogButton } from "#components/ui/dialog-button.tsx";
import type { LeaseListItem } from "#server/contracts/gpu-server.ts";

const EndLeaseDialog = lazy(() => import("./end-lease-dialog.tsx"));

/** Gives one's own GPU back, or ends somebody's lease, after a question. */
export function EndLease({ lease }: { lease: LeaseListItem }) {
  const own = useIsMe(lease.userId);
  const what = `${formatAmount(lease.milli)} of ${lease.deviceName}`;
  return (
    <DialogButton
      size="sm"
      disabled={lease.state === "ending"}
      aria-label={own ? `Give back ${what}` : `End lease of ${what}, ${lease.userName}`}
      dialog={(close) => <EndLeaseDialog lease={lease} own={own} onClose={close} />}
    >
      {own ? "Give back" : "End lease"}
    </DialogButton>
  );
}
