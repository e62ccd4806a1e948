"use client";

import { DataTable } from "#components/ui/data-table.tsx";
import type { PackageView } from "#server/contracts/image.ts";

/** What an environment holds, with the licence that each package tells of itself. */
export function PackageTable({ packages }: { packages: PackageView[] }) {
  return (
    <DataTable
      caption="Packages"
      rows={packages}
      rowKey={(row) => `${row.name} ${row.version}`}
      filter={(row) => `${row.name} ${row.licence ?? ""}`}
      filterLabel="Filter by name or licence"
      initial={{ id: "name" }}
      columns={[
        {
          id: "name",
          header: "Package",
          sort: (row) => row.name,
          cell: (row) => <code>{row.name}</code>,
        },
        { id: "version", header: "Version", cell: (row) => row.version, className: "figures" },
        {
          id: "licence",
          header: "Licence",
          sort: (row) => row.licence ?? "",
          cell: (row) => row.licence ?? <span className="text-ink-2">not told</span>,
        },
      ]}
    />
  );
}
