"use client";

import { formatGpuHours, formatMoney, formatShare } from "#components/format.ts";
import { DataTable } from "#components/ui/data-table.tsx";
import type { WasteRow } from "#server/contracts/cost.ts";

/** Who held GPUs that did nothing, for how long and for how much money. */
export function WasteTable({ rows, header, currency }: { rows: WasteRow[]; header: string; currency: string }) {
  return (
    <DataTable
      caption={`Held idle by ${header.toLowerCase()}`}
      rows={rows}
      rowKey={(row) => row.id}
      columns={[
        {
          id: "name",
          header,
          sort: (row) => row.name,
          cell: (row) => (
            <div className="min-w-20">
              {row.name}
              {row.within && <p className="text-sm text-ink-2">{row.within}</p>}
            </div>
          ),
        },
        {
          ...{ id: "held", header: "Held, GPU-h", align: "right", from: "sm" },
          sort: (row) => row.held,
          cell: (row) => formatGpuHours(row.held),
        },
        {
          ...{ id: "idle", header: "Idle, GPU-h", align: "right" },
          sort: (row) => row.hours,
          cell: (row) => formatGpuHours(row.hours),
        },
        {
          ...{ id: "share", header: "Of held", align: "right", from: "sm" },
          sort: (row) => (row.held > 0 ? row.hours / row.held : -1),
          cell: (row) => formatShare(row.hours, row.held),
        },
        {
          ...{ id: "money", header: "Cost of idle", align: "right" },
          sort: (row) => row.cents ?? -1,
          cell: (row) => (row.cents === null ? "no price" : formatMoney(row.cents, currency)),
        },
      ]}
    />
  );
}
