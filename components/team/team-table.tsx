"use client";

import { formatAmount } from "#components/format.ts";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { Link } from "#components/ui/link.tsx";
import type { TeamSummary } from "#server/contracts/team.ts";
import { QuotaBar } from "./quota-bar.tsx";

type Row = { team: TeamSummary; quota: TeamSummary["quotas"][number] | undefined };

/** Teams and their quotas, one line for each GPU type. */
export function TeamTable({ teams }: { teams: TeamSummary[] }) {
  const rows = teams.flatMap((team): Row[] => {
    if (team.quotas.length === 0) return [{ team, quota: undefined }];
    return team.quotas.map((quota) => ({ team, quota }));
  });
  const amount = (pick: (quota: NonNullable<Row["quota"]>) => number) => (row: Row) =>
    row.quota ? formatAmount(pick(row.quota)) : "–";
  const columns: Column<Row>[] = [
    {
      id: "team",
      header: "Team",
      sort: (row) => row.team.name,
      cell: (row) => (
        <Link href={`/teams/${row.team.name}`} className="font-medium underline-offset-4 hover:underline">
          {row.team.name}
        </Link>
      ),
    },
    {
      id: "type",
      header: "GPU type",
      sort: (row) => row.quota?.gpuType ?? "",
      cell: (row) => row.quota?.gpuType ?? "no quota",
    },
    {
      id: "bar",
      header: "In use",
      className: "min-w-32 w-2/5",
      from: "sm",
      cell: (row) => row.quota && <QuotaBar quota={row.quota} size="md" />,
    },
    {
      id: "used",
      header: "Used",
      align: "right",
      sort: (row) => row.quota?.usedMilli ?? -1,
      cell: amount((q) => q.usedMilli),
    },
    {
      id: "guaranteed",
      header: "Guaranteed",
      align: "right",
      from: "md",
      sort: (row) => row.quota?.guaranteedMilli ?? -1,
      cell: ({ quota }) => {
        if (quota === undefined) return "–";
        const { guaranteedMilli, guaranteedNowMilli } = quota;
        const now = guaranteedNowMilli === guaranteedMilli ? "" : `${formatAmount(guaranteedNowMilli)} now, quota `;
        return `${now}${formatAmount(guaranteedMilli)}`;
      },
    },
    {
      id: "limit",
      header: "Limit",
      align: "right",
      sort: (row) => row.quota?.limitMilli ?? -1,
      cell: amount((q) => q.limitMilli),
    },
    {
      id: "people",
      header: "People",
      align: "right",
      from: "lg",
      sort: (row) => row.team.memberCount,
      cell: (row) => row.team.memberCount,
    },
    {
      id: "workspaces",
      header: "Workspaces",
      align: "right",
      from: "lg",
      sort: (row) => row.team.workspaceCount,
      cell: (row) => row.team.workspaceCount,
    },
  ];
  return (
    <DataTable
      caption="Teams and quotas"
      rows={rows}
      columns={columns}
      rowKey={(row) => `${row.team.id} ${row.quota?.gpuType ?? ""}`}
      filter={rows.length > 8 ? (row) => `${row.team.name} ${row.quota?.gpuType ?? ""}` : undefined}
      filterLabel="Filter teams"
      initial={{ id: "team" }}
    />
  );
}
