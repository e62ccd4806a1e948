"use client";

import { formatBytes, formatCores } from "#components/format.ts";
import { DataTable } from "#components/ui/data-table.tsx";
import { ExactTime } from "#components/ui/time.tsx";
import type { WorkspaceSamples } from "#server/contracts/workspace.ts";

type Sample = WorkspaceSamples["samples"][number];

/** The figures behind the charts of a workspace. */
export function SampleTable({ samples }: { samples: Sample[] }) {
  return (
    <DataTable<Sample>
      caption="Use of the workspace"
      rows={[...samples].reverse()}
      rowKey={(row) => row.at}
      columns={[
        { id: "at", header: "From", sort: (row) => row.at, cell: (row) => <ExactTime at={row.at} /> },
        {
          id: "cpu",
          header: "CPU",
          align: "right",
          sort: (row) => row.cpuMilli,
          cell: (row) => formatCores(row.cpuMilli),
        },
        {
          id: "memory",
          header: "Memory",
          align: "right",
          sort: (row) => row.memoryBytes,
          cell: (row) => formatBytes(row.memoryBytes),
        },
      ]}
    />
  );
}
