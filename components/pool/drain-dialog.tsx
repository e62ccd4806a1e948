"use client";

import { useRouter } from "next/navigation";
import { useEffect, useState } from "react";
import { api } from "#components/api.ts";
import { formatAmount, formatBytes, plural } from "#components/format.ts";
import { Confirm } from "#components/ui/dialog.tsx";
import { Remaining } from "#components/ui/time.tsx";
import type { DrainEffects } from "#server/contracts/gpu-server.ts";

type Props = { what: "server" | "device"; id: string; name: string; onClose: () => void };

const paths = { server: "gpu-servers", device: "gpus" };

/** Asks before a server or a device takes no new leases, and names whom that concerns. */
export default function DrainDialog({ what, id, name, onClose }: Props) {
  const router = useRouter();
  const [effects, setEffects] = useState<DrainEffects>();
  const [error, setError] = useState<string>();
  const path = `/${paths[what]}/${id}`;
  useEffect(() => {
    let current = true;
    void api<DrainEffects>("GET", `${path}/drain-effects`).then((answer) => {
      if (!current) return;
      if (answer.ok) setEffects(answer.data);
      else setError(answer.error.message);
    });
    return () => {
      current = false;
    };
  }, [path]);
  const drain = async () => {
    const result = await api("POST", `${path}/drain`, { draining: true });
    router.refresh();
    return result.ok ? undefined : result.error.message;
  };
  return (
    <Confirm
      open
      onOpenChange={onClose}
      title={`Drain ${name}?`}
      loses="It takes no new lease until you let it again. What runs on it goes on to its end."
      confirmLabel={`Drain ${what}`}
      pendingLabel="Draining"
      danger={false}
      act={drain}
    >
      <section aria-live="polite" aria-label="Whom it concerns" className="figures text-sm">
        {error && <p className="text-bad">{error}</p>}
        {!effects && !error && <div className="skeleton h-16" aria-busy="true" />}
        {effects && <Effects effects={effects} />}
      </section>
    </Confirm>
  );
}

function Effects({ effects: { leaseCount, leases, parked, types } }: { effects: DrainEffects }) {
  return (
    <div className="flex flex-col gap-3 rounded-md bg-sunken px-3 py-2">
      {leases.length === 0 ? (
        <p>Nobody holds anything on it.</p>
      ) : (
        <div>
          <h3 className="font-medium">{plural(leaseCount, "lease")} on it</h3>
          <ul className="mt-0.5 list-disc pl-4 text-ink-2">
            {leases.map((lease) => (
              <li key={lease.id}>
                {formatAmount(lease.milli)} {lease.gpuType} of {lease.userName} ({lease.teamName}),{" "}
                {lease.workspaceName}: ends at its idle limit, or at its time limit in{" "}
                <Remaining until={lease.expiresAt} />
                {lease.fitsElsewhere ? "; as much is free elsewhere" : "; nothing of this size is free elsewhere now"}
              </li>
            ))}
            {leaseCount > leases.length && <li>and {plural(leaseCount - leases.length, "older lease")}</li>}
          </ul>
        </div>
      )}
      {parked.length > 0 && (
        <div>
          <h3 className="font-medium">Memory parked on it cannot come back meanwhile</h3>
          <ul className="mt-0.5 list-disc pl-4 text-ink-2">
            {parked.map((lease) => (
              <li key={lease.id}>
                {formatBytes(lease.parkedBytes)} of {lease.userName} ({lease.teamName}), {lease.workspaceName}
              </li>
            ))}
          </ul>
        </div>
      )}
      <ul>
        {types.map(({ gpuType, openMilli, guaranteedMilli, largestFreeMilli }) => (
          <li key={gpuType}>
            {formatAmount(openMilli.after)} {gpuType} would take leases instead of {formatAmount(openMilli.before)};{" "}
            {largestFreeMilli > 0
              ? `the largest free piece would be ${formatAmount(largestFreeMilli)}`
              : "nothing would be free"}
            {guaranteedMilli > openMilli.after && (
              <span className="text-warn">
                ; teams are guaranteed {formatAmount(guaranteedMilli)}, so not all of them can have theirs
              </span>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}
