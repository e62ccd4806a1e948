"use client";

import { formatGpuHours } from "#components/format.ts";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { ExactTime } from "#components/ui/time.tsx";
import type { Utilisation } from "#server/contracts/utilisation.ts";

type Bin = Utilisation["bins"][number];
type Part = "used" | "heldIdle" | "free" | "draining" | "lost" | "borrowed";

/** The figures behind the chart. */
export function TimeTable({ bins }: { bins: Bin[] }) {
  const part = (id: Part, header: string, from?: Column<Bin>["from"]): Column<Bin> => ({
    ...{ id, header, from, align: "right" },
    sort: (row) => row[id],
    cell: (row) => formatGpuHours(row[id]),
  });
  return (
    <DataTable
      caption="GPU-hours over time"
      rows={bins}
      rowKey={(row) => row.from}
      columns={[
        { id: "from", header: "From", sort: (row) => row.from, cell: (row) => <ExactTime at={row.from} /> },
        part("used", "Used"),
        part("heldIdle", "Held idle"),
        part("free", "Free"),
        part("draining", "Draining", "sm"),
        part("lost", "Lost", "sm"),
        part("borrowed", "Borrowed", "md"),
      ]}
    />
  );
}
