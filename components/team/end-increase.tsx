"use client";

import { useRouter } from "next/navigation";
import { api } from "#components/api.ts";
import { formatAmount } from "#components/format.ts";
import { Confirm } from "#components/ui/dialog.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { QuotaRequestView } from "#server/contracts/sharing.ts";

/** Asks, then ends an approved increase before its time. */
export function EndIncrease({ request, onClose }: { request: QuotaRequestView; onClose: () => void }) {
  const router = useRouter();
  const toast = useToast();
  const what = `${formatAmount(request.limitMilli)} ${request.gpuType}`;
  return (
    <Confirm
      open
      onOpenChange={onClose}
      title={`End the increase of ${what}?`}
      loses="The quota returns to its usual amounts now. Leases of the team continue and count against it."
      confirmLabel="End increase"
      pendingLabel="Ending"
      act={async () => {
        const result = await api("POST", `/quota-requests/${request.id}/end`);
        router.refresh();
        if (!result.ok) return result.error.message;
        toast(`The increase of ${what} has ended.`);
        return undefined;
      }}
    />
  );
}
