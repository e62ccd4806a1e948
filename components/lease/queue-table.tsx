"use client";

import { lazy } from "react";
import { formatAmount } from "#components/format.ts";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { DialogButton } from "#components/ui/dialog-button.tsx";
import { Age } from "#components/ui/time.tsx";
import { formatWait } from "./likely-wait.ts";

const ExplainRequest = lazy(() => import("./explain-request.tsx"));

/** A waiting request, from the pool's queue or from one's own. */
export type QueueRow = {
  requestId: string;
  gpuType: string;
  milli: number;
  position: number;
  of: number;
  teamName: string;
  userName: string;
  workspaceName: string;
  label: string | null;
  reason: string;
  hint?: string;
  likelySeconds: number | null;
  soonestSeconds: number | null;
  waitingSince: string;
  /** Whoever looks may take it out of the queue. */
  canLeave: boolean;
};

/** Who waits, where in the queue, why, and until about when; the whole explanation is a press away. */
export function QueueTable({ rows }: { rows: QueueRow[] }) {
  const columns: Column<QueueRow>[] = [
    {
      id: "place",
      header: "Place",
      align: "right",
      sort: (row) => row.position,
      cell: (row) => `${row.position} of ${row.of}`,
    },
    {
      id: "amount",
      header: "Amount",
      align: "right",
      sort: (row) => row.milli,
      cell: (row) => `${formatAmount(row.milli)} ${row.gpuType}`,
    },
    {
      id: "who",
      header: "Who",
      sort: (row) => row.userName,
      cell: (row) => (
        <div className="min-w-24">
          {row.userName} <span className="text-ink-2">({row.teamName})</span>
          <p className="text-sm text-ink-2">
            {row.workspaceName}
            {row.label && `, ${row.label}`}
          </p>
          <div className="mt-1 md:hidden">
            <Why row={row} />
          </div>
        </div>
      ),
    },
    {
      id: "why",
      header: "Why it waits",
      from: "md",
      className: "min-w-48 max-w-xl",
      cell: (row) => <Why row={row} />,
    },
    {
      id: "likely",
      header: "Likely in",
      align: "right",
      from: "sm",
      sort: (row) => row.likelySeconds ?? Number.MAX_SAFE_INTEGER,
      cell: (row) =>
        row.likelySeconds === null ? (
          <span className="text-ink-2">no estimate</span>
        ) : (
          formatWait({ likelySeconds: row.likelySeconds, soonestSeconds: row.soonestSeconds })
        ),
    },
    {
      id: "since",
      header: "Waits for",
      align: "right",
      sort: (row) => row.waitingSince,
      from: "sm",
      cell: (row) => <Age from={row.waitingSince} />,
    },
    {
      id: "explain",
      header: "Details",
      quiet: true,
      align: "right",
      cell: (row) => (
        <DialogButton
          size="sm"
          aria-label={`Why ${formatAmount(row.milli)} ${row.gpuType} of ${row.userName} waits`}
          dialog={(close) => <ExplainRequest row={row} close={close} />}
        >
          Why
        </DialogButton>
      ),
    },
  ];
  return <DataTable caption="Queue" rows={rows} columns={columns} rowKey={(row) => row.requestId} />;
}

/** The rule's sentence, and what can be done at once. */
function Why({ row }: { row: QueueRow }) {
  return (
    <>
      {row.reason.charAt(0).toUpperCase() + row.reason.slice(1)}
      {row.hint && (
        <p className="text-sm text-ink-2">
          Now: <code>{row.hint}</code>
        </p>
      )}
    </>
  );
}
