"use client";

import { formatAmount } from "#components/format.ts";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { Link } from "#components/ui/link.tsx";
import { EditQuotaCalendar } from "./edit-calendar.tsx";
import type { QuotaCalendarView } from "./quota-calendar.tsx";
import { quotaWords } from "./words.ts";

/** From so many teams on, one is looked for by its name. */
const MANY = 12;

/** Teams whose quota of a type is the same at every hour, a line each; a calendar for one is made from here. */
export function PlainQuotas({
  gpuType,
  quotas,
  timeZone,
}: {
  gpuType: string;
  quotas: QuotaCalendarView[];
  timeZone: string;
}) {
  if (quotas.length === 0) return null;
  const columns: Column<QuotaCalendarView>[] = [
    {
      id: "team",
      header: "Team without a calendar",
      sort: ({ teamName }) => teamName,
      cell: ({ teamName, ...quota }) => (
        <>
          <Link href={`/teams/${teamName}`} className="font-medium hover:underline">
            {teamName}
          </Link>
          <p className="figures text-sm text-ink-2 sm:hidden">{quotaWords(quota)}</p>
        </>
      ),
    },
    {
      id: "guaranteed",
      header: "Guaranteed",
      align: "right",
      from: "sm",
      sort: ({ guaranteedMilli }) => guaranteedMilli,
      cell: ({ guaranteedMilli }) => formatAmount(guaranteedMilli),
    },
    {
      id: "limit",
      header: "Limit",
      align: "right",
      from: "sm",
      sort: ({ limitMilli }) => limitMilli,
      cell: ({ limitMilli }) => formatAmount(limitMilli),
    },
    {
      id: "edit",
      header: "Calendar",
      quiet: true,
      align: "right",
      cell: (quota) => <EditQuotaCalendar title={`team ${quota.teamName}`} short {...{ gpuType, quota, timeZone }} />,
    },
  ];
  return (
    <div className="mt-3">
      <DataTable
        caption={`Teams without a calendar of ${gpuType}`}
        rows={quotas}
        columns={columns}
        rowKey={({ teamId }) => teamId}
        filter={quotas.length >= MANY ? ({ teamName }) => teamName : undefined}
        filterLabel="Filter teams"
      />
    </div>
  );
}
