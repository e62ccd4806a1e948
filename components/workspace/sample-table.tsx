"use client";

import { formatAmount, formatBytes, formatCores } from "#components/format.ts";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { ExactTime } from "#components/ui/time.tsx";
import { type SampleRow, sampleRows } from "#server/contracts/sample-rows.ts";
import type { WorkspaceSamples } from "#server/contracts/workspace.ts";

/** The figures behind the charts of a workspace, a row for each stretch, the newest first. */
export function SampleTable({ chart }: { chart: WorkspaceSamples }) {
  return (
    <DataTable<SampleRow>
      caption="Use of the workspace"
      rows={sampleRows(chart).reverse()}
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
  of: (row: SampleRow) => number | undefined,
  format: (value: number) => string,
): Column<SampleRow> {
  const cell = (row: SampleRow) => {
    const value = of(row);
    return value === undefined ? "–" : format(value);
  };
  return { id, header, align: "right", sort: (row) => of(row) ?? -1, cell };
}
