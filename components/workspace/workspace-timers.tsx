"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { amountsOf } from "#components/lease/amounts.ts";
import { EndsIn, endOf } from "#components/lease/ends-in.tsx";
import { Button } from "#components/ui/button.tsx";
import { Remaining } from "#components/ui/time.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { WorkspaceView } from "#server/contracts/workspace.ts";

const HOUR = 3600;

/** The two clocks: how long the GPU stays without work and at most, and how long the workspace runs without activity. */
export function WorkspaceTimers({ workspace }: { workspace: WorkspaceView }) {
  const { id, leases, stopsAt, can, observed } = workspace;
  const [next] = [...leases].sort((a, b) => endOf(a).localeCompare(endOf(b)));
  const [extended] = leases
    .filter((lease) => lease.releaseAt === null)
    .sort((a, b) => a.expiresAt.localeCompare(b.expiresAt));
  return (
    <>
      {next ? (
        <span className="inline-flex flex-wrap items-center gap-x-1.5">
          <span>
            {amountsOf(leases)}
            {leases.length > 1 && ", the first"}: <EndsIn lease={next} />
          </span>
          {can.change && extended && <Extend path={`/leases/${extended.id}/extend`} hours={1} what="GPU" />}
        </span>
      ) : (
        observed === "running" && <span>no GPU attached</span>
      )}
      {stopsAt && (
        <span className="inline-flex flex-wrap items-center gap-x-1.5">
          <span>
            without activity it stops in <Remaining until={stopsAt} />
          </span>
          {can.work && <Extend path={`/workspaces/${id}/extend`} hours={2} what="workspace" />}
        </span>
      )}
    </>
  );
}

function Extend({ path, hours, what }: { path: string; hours: number; what: string }) {
  const router = useRouter();
  const toast = useToast();
  const [pending, setPending] = useState(false);
  const extend = async () => {
    setPending(true);
    const result = await api("POST", path, { forSeconds: hours * HOUR });
    setPending(false);
    if (!result.ok) toast(result.error.message, "bad");
    router.refresh();
  };
  return (
    <Button
      size="sm"
      variant="ghost"
      className="-my-1 h-6 px-1.5 text-accent"
      pending={pending}
      onClick={() => void extend()}
      aria-label={`Extend ${hours} h: the ${what}`}
    >
      Extend {hours} h
    </Button>
  );
}
