"use client";

import { formatGpuHours } from "#components/format.ts";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { ExactTime } from "#components/ui/time.tsx";
import type { Utilisation } from "#server/contracts/utilisation.ts";

type Bin = Utilisation["bins"][number];
type Part = "used" | "effective" | "heldIdle" | "free" | "draining" | "lost" | "borrowed" | "stranded";

/** Hours, or that nobody knows them. */
const hoursOrUnknown = (hours: number | null) =>
  hours === null ? <span className="text-ink-2">not known</span> : formatGpuHours(hours);

/** The figures behind the chart; what was stranded is told of the `whole` pool or a type alone. */
export function TimeTable({ bins, whole }: { bins: Bin[]; whole: boolean }) {
  const part = (id: Part, header: string, from?: Column<Bin>["from"]): Column<Bin> => ({
    ...{ id, header, from, align: "right" },
    sort: (row) => row[id] ?? -1,
    cell: (row) => hoursOrUnknown(row[id]),
  });
  return (
    <DataTable
      caption="GPU-hours over time"
      rows={bins}
      rowKey={(row) => row.from}
      columns={[
        { id: "from", header: "From", sort: (row) => row.from, cell: (row) => <ExactTime at={row.from} /> },
        part("used", "Used"),
        part("effective", "Effective"),
        part("heldIdle", "Held idle"),
        part("free", "Free"),
        part("draining", "Draining", "sm"),
        part("lost", "Lost", "sm"),
        part("borrowed", "Borrowed", "md"),
        ...(whole ? [part("stranded", "Stranded", "md")] : []),
      ]}
    />
  );
}
