"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { formatAmount } from "#components/format.ts";
import { Button } from "#components/ui/button.tsx";
import { DataTable } from "#components/ui/data-table.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { State, type Tone } from "#components/ui/state.tsx";
import { Age } from "#components/ui/time.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { WorkspaceKernel } from "#server/contracts/workspace-kernel.ts";

const tones: Record<WorkspaceKernel["state"], Tone> = {
  busy: "busy",
  idle: "idle",
  starting: "busy",
  restarting: "warn",
  dead: "bad",
  unknown: "idle",
};
const nameOf = (kernel: WorkspaceKernel) => kernel.path ?? `${kernel.name} without a notebook`;

/** Notebooks that run: what they do, since when they are idle, their GPU, and how to stop them. */
export function KernelTable({
  workspaceId,
  kernels,
  mayChange,
}: {
  workspaceId: string;
  kernels: WorkspaceKernel[];
  mayChange: boolean;
}) {
  return (
    <DataTable
      caption="Running notebooks"
      rows={kernels}
      rowKey={(row) => row.id}
      filter={kernels.length > 5 ? nameOf : undefined}
      filterLabel="Filter notebooks"
      columns={[
        {
          id: "name",
          header: "Notebook",
          sort: nameOf,
          cell: (row) => (
            <div className="min-w-24 wrap-anywhere">
              {nameOf(row)}
              <p className="text-sm text-ink-2">{row.name}</p>
            </div>
          ),
        },
        {
          id: "state",
          header: "State",
          sort: (row) => row.state,
          cell: (row) => <State tone={tones[row.state]}>{row.state}</State>,
        },
        {
          id: "idle",
          header: "Idle for",
          align: "right",
          from: "sm",
          sort: (row) => (row.state === "busy" ? "9999" : (row.lastActivityAt ?? "")),
          cell: (row) =>
            row.state === "busy" || row.lastActivityAt === null ? (
              <span className="text-ink-2">–</span>
            ) : (
              <Age from={row.lastActivityAt} />
            ),
        },
        {
          id: "gpu",
          header: "GPU",
          align: "right",
          from: "sm",
          sort: (row) => row.gpuMilli,
          cell: (row) => (row.gpuMilli > 0 ? formatAmount(row.gpuMilli) : <span className="text-ink-2">–</span>),
        },
        {
          id: "open",
          header: "Open in",
          align: "right",
          from: "md",
          sort: (row) => row.connections,
          cell: (row) => (row.connections === 1 ? "1 browser tab" : `${row.connections} browser tabs`),
        },
        {
          id: "actions",
          header: "Interrupt or shut down",
          quiet: true,
          align: "right",
          cell: (row) => mayChange && <KernelActions workspaceId={workspaceId} kernel={row} />,
        },
      ]}
    />
  );
}

function KernelActions({ workspaceId, kernel }: { workspaceId: string; kernel: WorkspaceKernel }) {
  const router = useRouter();
  const toast = useToast();
  const [pending, setPending] = useState(false);
  const [asking, setAsking] = useState(false);
  const base = `/workspaces/${workspaceId}/kernels/${kernel.id}`;
  const name = nameOf(kernel);
  const interrupt = async () => {
    setPending(true);
    const result = await api("POST", `${base}/interrupt`);
    setPending(false);
    toast(result.ok ? `${name} was interrupted; its variables stay.` : result.error.message, result.ok ? "ok" : "bad");
    router.refresh();
  };
  const shutDown = async () => {
    const result = await api("DELETE", base);
    router.refresh();
    return result.ok ? undefined : result.error.message;
  };
  return (
    <div className="flex flex-wrap justify-end gap-1.5">
      <Button
        size="sm"
        pending={pending}
        onClick={() => void interrupt()}
        aria-label={`Interrupt ${name}`}
        disabled={kernel.state === "dead"}
      >
        Interrupt
      </Button>
      <Button size="sm" onClick={() => setAsking(true)} aria-label={`Shut down ${name}`}>
        Shut down
      </Button>
      <Confirm
        open={asking}
        onOpenChange={setAsking}
        title={`Shut down ${name}?`}
        loses={
          <>
            What it holds in memory is lost.{" "}
            {kernel.gpuMilli > 0 && `Its GPU (${formatAmount(kernel.gpuMilli)}) goes back to the pool. `}The file of the
            notebook stays.
          </>
        }
        confirmLabel="Shut down"
        pendingLabel="Shutting down"
        act={shutDown}
      />
    </div>
  );
}
