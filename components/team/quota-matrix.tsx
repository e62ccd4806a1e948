"use client";

import { formatAmount, plural } from "#components/format.ts";
import { formatGuaranteed } from "#components/lease/guaranteed.ts";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { Link } from "#components/ui/link.tsx";
import { RelativeTime } from "#components/ui/time.tsx";
import type { TeamList, TeamSummary } from "#server/contracts/team.ts";
import { EditQuota } from "./edit-quota.tsx";
import { limitNow, QuotaBar } from "./quota-bar.tsx";

/** Teams by GPU types, each with its quota to edit; what is guaranteed to nobody stands below. */
export function QuotaMatrix({ teams, pool }: Pick<TeamList, "teams" | "pool">) {
  const quotaOf = (team: TeamSummary, gpuType: string) => team.quotas.find((quota) => quota.gpuType === gpuType);
  const inPool = pool.filter(({ capacityMilli }) => capacityMilli > 0).map(({ gpuType }) => gpuType);
  const columns: Column<TeamSummary>[] = [
    {
      id: "team",
      header: "Team",
      sort: (team) => team.name,
      cell: (team) => (
        <>
          <Link href={`/teams/${team.name}`} className="font-medium underline-offset-4 hover:underline">
            {team.name}
          </Link>
          <p className="figures text-sm whitespace-nowrap text-ink-2">{plural(team.memberCount, "person", "people")}</p>
        </>
      ),
      foot: <span className="font-medium">Unallocated</span>,
    },
    ...pool.map(({ gpuType, capacityMilli, unallocatedMilli }): Column<TeamSummary> => {
      return {
        id: gpuType,
        header: gpuType,
        className: "min-w-24 sm:min-w-44",
        sort: (team) => quotaOf(team, gpuType)?.guaranteedMilli ?? -1,
        cell: (team) => <QuotaCell team={team} quota={quotaOf(team, gpuType)} />,
        foot: (
          <span className="figures">
            {unallocatedMilli < 0 ? (
              <span className="text-warn">{formatAmount(unallocatedMilli)}: more is guaranteed than there is,</span>
            ) : (
              formatAmount(unallocatedMilli)
            )}{" "}
            <span className="text-ink-2">of {formatAmount(capacityMilli)}</span>
          </span>
        ),
      };
    }),
    {
      id: "add",
      header: "Add",
      quiet: true,
      align: "right",
      cell: (team) => (
        <EditQuota
          short
          teamId={team.id}
          teamName={team.name}
          types={inPool.filter((gpuType) => quotaOf(team, gpuType) === undefined)}
        />
      ),
    },
  ];
  return (
    <DataTable
      caption="Teams and quotas"
      rows={teams}
      columns={columns}
      rowKey={(team) => team.id}
      filter={teams.length > 8 ? (team) => team.name : undefined}
      filterLabel="Filter teams"
      initial={{ id: "team" }}
    />
  );
}

function QuotaCell({ team, quota }: { team: TeamSummary; quota: TeamSummary["quotas"][number] | undefined }) {
  if (quota === undefined) return <span className="text-ink-2">–</span>;
  const { usedMilli } = quota;
  const [firstEnd] = quota.increases;
  return (
    <div className="flex flex-col items-start gap-x-3 gap-y-1.5 sm:flex-row sm:items-center">
      <div className="w-full min-w-0 grow">
        <QuotaBar quota={quota} size="md" />
        {/* Breaks between the figures, so that four types stand beside each other on a common screen. */}
        <p className="figures mt-1 text-sm text-ink-2">
          <span className="whitespace-nowrap text-ink">{formatAmount(usedMilli)} used</span>,{" "}
          <span className="whitespace-nowrap">{formatGuaranteed(quota)}</span>,{" "}
          <span className="whitespace-nowrap">limit {formatAmount(limitNow(quota))}</span>
          {firstEnd && (
            <>
              , more ends <RelativeTime at={firstEnd.endsAt} />
            </>
          )}
        </p>
      </div>
      <EditQuota short teamId={team.id} teamName={team.name} quota={quota} />
    </div>
  );
}
