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
          <NarrowQuotas team={team} />
        </>
      ),
      foot: (
        <>
          <span className="font-medium">Unallocated</span>
          {pool.map((type) => (
            <p key={type.gpuType} className="sm:hidden">
              {type.gpuType}: <Unallocated {...type} />
            </p>
          ))}
        </>
      ),
    },
    ...pool.map((type): Column<TeamSummary> => {
      const { gpuType } = type;
      return {
        id: gpuType,
        header: gpuType,
        from: "sm",
        className: "min-w-44",
        sort: (team) => quotaOf(team, gpuType)?.guaranteedMilli ?? -1,
        cell: (team) => <QuotaCell team={team} quota={quotaOf(team, gpuType)} />,
        foot: <Unallocated {...type} />,
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

/** On narrow screens, quotas appear below the team's name instead of in columns. */
function NarrowQuotas({ team }: { team: TeamSummary }) {
  return (
    <ul className="mt-1.5 flex flex-col gap-3 sm:hidden">
      {team.quotas.map((quota) => (
        <li key={quota.gpuType}>
          <p className="text-sm font-medium">{quota.gpuType}</p>
          <QuotaCell team={team} quota={quota} />
        </li>
      ))}
    </ul>
  );
}

function Unallocated({ capacityMilli, unallocatedMilli }: TeamList["pool"][number]) {
  return (
    <span className="figures">
      {unallocatedMilli < 0 ? (
        <span className="text-warn">{formatAmount(unallocatedMilli)}: guarantees exceed capacity,</span>
      ) : (
        formatAmount(unallocatedMilli)
      )}{" "}
      <span className="text-ink-2">of {formatAmount(capacityMilli)}</span>
    </span>
  );
}

function QuotaCell({ team, quota }: { team: TeamSummary; quota: TeamSummary["quotas"][number] | undefined }) {
  if (quota === undefined) return <span className="text-ink-2">–</span>;
  const { usedMilli } = quota;
  const [firstEnd] = quota.increases;
  return (
    <div className="flex items-center gap-x-3">
      <div className="w-full min-w-0 grow">
        <QuotaBar quota={quota} size="md" />
        {/* Breaks between the figures, so that four types stand beside each other on a common screen. */}
        <p className="figures mt-1 text-sm text-ink-2">
          <span className="whitespace-nowrap text-ink">{formatAmount(usedMilli)} used</span>,{" "}
          <span className="whitespace-nowrap">{formatGuaranteed(quota)}</span>,{" "}
          <span className="whitespace-nowrap">limit {formatAmount(limitNow(quota))}</span>
          {firstEnd && (
            <>
              , increase ends <RelativeTime at={firstEnd.endsAt} />
            </>
          )}
        </p>
      </div>
      <EditQuota short teamId={team.id} teamName={team.name} quota={quota} />
    </div>
  );
}
