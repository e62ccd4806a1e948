"use client";

import { formatGpuHours } from "#components/format.ts";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { ExactTime } from "#components/ui/time.tsx";
import type { WhatIfType } from "#server/contracts/what-if.ts";

type Row = WhatIfType["bins"][number];

/** The figures behind the charts: GPUs on average. */
export function BinTable({ gpuType, bins }: { gpuType: string; bins: Row[] }) {
  const column = (id: string, header: string, value: (row: Row) => number): Column<Row> => ({
    ...{ id, header, align: "right" },
    sort: value,
    cell: (row) => formatGpuHours(value(row)),
  });
  return (
    <DataTable
      caption={`${gpuType} over time, GPUs on average`}
      rows={bins}
      rowKey={(row) => row.from}
      columns={[
        { id: "from", header: "From", sort: (row) => row.from, cell: (row) => <ExactTime at={row.from} /> },
        column("heldNow", "Held now", (row) => row.now.held),
        column("heldProposed", "Held proposed", (row) => row.proposed.held),
        column("waitingNow", "Waited for now", (row) => row.now.waiting),
        column("waitingProposed", "Waited for proposed", (row) => row.proposed.waiting),
      ]}
    />
  );
}
