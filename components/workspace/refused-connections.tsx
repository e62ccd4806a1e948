"use client";

import { formatCount, plural } from "#components/format.ts";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { RelativeTime } from "#components/ui/time.tsx";
import type { EgressRefusalList } from "#server/contracts/egress.ts";

type Row = EgressRefusalList["refusals"][number];

const columns: Column<Row>[] = [
  {
    id: "host",
    header: "Host",
    className: "min-w-36 break-all",
    sort: (row) => row.host,
    cell: (row) => (
      <>
        {row.host}
        <p className="text-sm break-words text-ink-2 lg:hidden">
          {row.reason}
          <span className="sm:hidden"> {plural(row.count, "attempt")}.</span>
        </p>
      </>
    ),
  },
  { id: "port", header: "Port", align: "right", sort: (row) => row.port, cell: (row) => row.port },
  {
    ...{ id: "count", header: "Attempts", align: "right", from: "sm" },
    sort: (row) => row.count,
    cell: (row) => formatCount(row.count),
  },
  {
    ...{ id: "last", header: "Last attempt", className: "whitespace-nowrap" },
    sort: (row) => row.lastAt,
    cell: (row) => <RelativeTime at={row.lastAt} />,
  },
  { id: "rule", header: "Rule", from: "lg", className: "break-words", cell: (row) => row.reason },
];

/** Connections that the team's outgoing network policy refused. Narrow pages show rule and attempts below the host. */
export function RefusedConnections({ refusals }: { refusals: Row[] }) {
  return (
    <DataTable
      caption="Refused connections"
      rows={refusals}
      rowKey={(row) => `${row.host} ${row.port}`}
      initial={{ id: "last", down: true }}
      columns={columns}
    />
  );
}
