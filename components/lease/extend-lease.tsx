"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { formatAmount, formatExact } from "#components/format.ts";
import { useTimeZone } from "#components/time-zone/time-zone-context.tsx";
import { Button } from "#components/ui/button.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { LeaseListItem } from "#server/contracts/gpu-server.ts";
import type { ExtendLeaseAnswer } from "#server/contracts/lease.ts";

/** Keeps one's own GPU for an hour more; the server refuses what is beyond the team's longest. */
export function ExtendLease({ lease }: { lease: LeaseListItem }) {
  const router = useRouter();
  const toast = useToast();
  const zone = useTimeZone();
  const [pending, setPending] = useState(false);
  const extend = async () => {
    setPending(true);
    const result = await api<ExtendLeaseAnswer>("POST", `/leases/${lease.id}/extend`, { forSeconds: 3600 });
    setPending(false);
    if (result.ok) toast(`Yours until ${formatExact(result.data.expiresAt, zone)}.`);
    else toast(result.error.message, "bad");
    router.refresh();
  };
  return (
    <Button
      size="sm"
      pending={pending}
      pendingLabel="Extending"
      disabled={lease.state === "ending" || lease.releaseAt !== null}
      onClick={() => void extend()}
      aria-label={`Extend 1 h: ${formatAmount(lease.milli)} of ${lease.deviceName}`}
    >
      Extend 1 h
    </Button>
  );
}
