"use client";

import { formatAmount, formatBytes, formatCores } from "#components/format.ts";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { ExactTime } from "#components/ui/time.tsx";
import type { WorkspaceSamples } from "#server/contracts/workspace.ts";

type Processes = WorkspaceSamples["samples"][number];
type Gpu = WorkspaceSamples["gpu"][number];
type Row = { at: string; processes?: Processes; gpu?: Gpu };

/** The figures behind the charts of a workspace, a row for each stretch, the newest first. */
export function SampleTable({ chart }: { chart: WorkspaceSamples }) {
  const rows = new Map<string, Row>();
  for (const processes of chart.samples) rows.set(processes.at, { at: processes.at, processes });
  for (const gpu of chart.gpu) rows.set(gpu.at, { ...rows.get(gpu.at), at: gpu.at, gpu });
  return (
    <DataTable<Row>
      caption="Use of the workspace"
      rows={[...rows.values()].sort((a, b) => b.at.localeCompare(a.at))}
      rowKey={(row) => row.at}
      columns={[
        { id: "at", header: "From", sort: (row) => row.at, cell: (row) => <ExactTime at={row.at} /> },
        figure("cpu", "CPU", ({ processes }) => processes?.cpuMilli, formatCores),
        figure("memory", "Memory", ({ processes }) => processes?.memoryBytes, formatBytes),
        ...(chart.gpu.length === 0
          ? []
          : [
              figure("held", "GPUs held", ({ gpu }) => gpu?.heldMilli, formatAmount),
              figure("used", "GPU time", ({ gpu }) => gpu?.usedMilli, formatAmount),
              figure("gpuMemory", "GPU memory", ({ gpu }) => gpu?.memoryBytes, formatBytes),
            ]),
      ]}
    />
  );
}

/** A column of numbers; a stretch in which it was not measured has none. */
function figure(
  id: string,
  header: string,
  of: (row: Row) => number | undefined,
  format: (value: number) => string,
): Column<Row> {
  const cell = (row: Row) => {
    const value = of(row);
    return value === undefined ? "–" : format(value);
  };
  return { id, header, align: "right", sort: (row) => of(row) ?? -1, cell };
}
