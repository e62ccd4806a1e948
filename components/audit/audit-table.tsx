"use client";

import { useTimeZone } from "#components/time-zone/time-zone-context.tsx";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { ExactTime } from "#components/ui/time.tsx";
import type { AuditEvent } from "#server/contracts/audit.ts";
import { particulars, shortId } from "./particulars.ts";

const columns: Column<AuditEvent>[] = [
  { id: "at", header: "Time", sort: (row) => row.seq, cell: (row) => <ExactTime at={row.at} /> },
  {
    id: "who",
    header: "Who",
    sort: (row) => row.actorName,
    className: "min-w-20 wrap-anywhere sm:max-w-44",
    cell: (row) => (
      <span>
        {row.actorName}
        {row.actorKind !== "user" && row.actorKind !== "system" && (
          <span className="block text-sm text-ink-2">{row.actorKind}</span>
        )}
        {row.tokenName && <span className="block text-sm text-ink-2">by token {row.tokenName}</span>}
      </span>
    ),
  },
  {
    id: "action",
    header: "Action",
    className: "min-w-36 wrap-anywhere",
    sort: (row) => row.action,
    cell: (row) => (
      <>
        <code>{row.action}</code>
        <p className="text-sm text-ink-2 sm:hidden">
          <Subject row={row} />
        </p>
      </>
    ),
  },
  {
    id: "subject",
    header: "To",
    from: "sm",
    className: "min-w-24 max-w-44 wrap-anywhere",
    sort: (row) => row.subjectName ?? row.subject ?? "",
    cell: (row) => <Subject row={row} />,
  },
  { id: "team", header: "Team", from: "lg", sort: (row) => row.teamName ?? "", cell: (row) => row.teamName ?? "–" },
  {
    id: "address",
    header: "Address",
    from: "xl",
    sort: (row) => row.address ?? "",
    cell: (row) => (row.address === null ? "–" : <code>{row.address}</code>),
  },
  {
    id: "detail",
    header: "Particulars",
    from: "md",
    className: "min-w-44 max-w-md text-sm wrap-anywhere text-ink-2",
    cell: (row) => <Particulars row={row} />,
  },
];

/** Who did what, with exact times; the column of addresses stands where one is known. */
export function AuditTable({ events }: { events: AuditEvent[] }) {
  const shown = events.some((row) => row.address !== null) ? columns : columns.filter(({ id }) => id !== "address");
  return (
    <DataTable
      caption="Audit"
      rows={events}
      columns={shown}
      rowKey={(row) => String(row.seq)}
      initial={{ id: "at", down: true }}
    />
  );
}

function Particulars({ row }: { row: AuditEvent }) {
  return particulars(row.detail, useTimeZone());
}

/** What it was done to, by name where it has one. */
function Subject({ row: { subject, subjectName } }: { row: AuditEvent }) {
  const title = subject ?? undefined;
  if (subjectName) return <span title={title}>{subjectName}</span>;
  return <code title={title}>{subject ? shortId(subject) : "–"}</code>;
}
