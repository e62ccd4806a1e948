"use client";

import { formatGpuHours, formatMoney } from "#components/format.ts";
import { DataTable } from "#components/ui/data-table.tsx";
import type { CostRow } from "#server/contracts/cost.ts";

/** Costs by team, person or workspace, with the lines that are nobody's. */
export function CostTable({
  rows,
  header,
  currency,
  total,
}: {
  rows: CostRow[];
  header: string;
  currency: string;
  /** null: nothing of it has a price. */
  total: { hours: number; cents: number | null };
}) {
  return (
    <>
      <DataTable
        caption={`Costs by ${header.toLowerCase()}`}
        rows={rows}
        rowKey={(row) => row.id}
        columns={[
          {
            id: "name",
            header,
            sort: (row) => row.name,
            cell: (row) => (
              <div className={row.nobody ? "min-w-20 text-ink-2" : "min-w-20"}>
                {row.name}
                {row.within && <p className="text-sm text-ink-2">{row.within}</p>}
              </div>
            ),
          },
          {
            id: "hours",
            header: "GPU-hours",
            align: "right",
            sort: (row) => row.hours,
            cell: (row) => formatGpuHours(row.hours),
          },
          {
            id: "money",
            header: "Cost",
            align: "right",
            sort: (row) => row.cents ?? -1,
            cell: (row) => (
              <>
                {row.cents === null ? "no price" : formatMoney(row.cents, currency)}
                {row.cents !== null && row.unpricedHours > 0 && (
                  <span className="block text-sm text-ink-2">
                    {formatGpuHours(row.unpricedHours)} GPU-hours have no price
                  </span>
                )}
              </>
            ),
          },
        ]}
      />
      <p className="figures mt-2 flex flex-wrap justify-end gap-x-6 px-3 font-medium">
        <span>Total</span>
        <span>{formatGpuHours(total.hours)} GPU-hours</span>
        <span>{total.cents === null ? "no price" : formatMoney(total.cents, currency)}</span>
      </p>
    </>
  );
}
