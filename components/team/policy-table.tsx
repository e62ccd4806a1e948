"use client";

import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { Link } from "#components/ui/link.tsx";
import type { TeamPolicyList, TeamPolicyView } from "#server/contracts/sharing.ts";
import { EditPolicy } from "./edit-policy.tsx";
import { type ComputeCeiling, type CoTenancy, type PolicyTime, timeThatCounts } from "./policy-fields.ts";

type Row = TeamPolicyList["teams"][number];

/** In fewer words than where one team's policy stands alone. */
const TIMES: [name: PolicyTime, header: string, from?: Column<Row>["from"]][] = [
  ["idleSeconds", "GPU idle"],
  ["maxLeaseSeconds", "Longest lease", "sm"],
  ["minRunSeconds", "Minimum run", "lg"],
  ["noticeSeconds", "Notice", "lg"],
  ["longKernelSeconds", "Long kernel", "xl"],
  ["workspaceIdleSeconds", "Workspace idle", "md"],
];
const CARDS: Record<CoTenancy, string> = {
  any: "with every team",
  "own-team": "inside the team",
  "whole-cards": "whole cards only",
};

const COMPUTE: Record<ComputeCeiling, string> = { none: "share and idle", share: "share alone" };

/** Every team's policy: what a team says itself stands out, everything else is as everywhere. */
export function PolicyTable({ teams }: { teams: Row[] }) {
  return (
    <DataTable
      caption="Policies by team"
      rows={teams}
      rowKey={(row) => row.id}
      filter={(row) => row.name}
      filterLabel="Filter teams"
      columns={[
        {
          id: "team",
          header: "Team",
          className: "min-w-28 break-words",
          sort: (row) => row.name,
          cell: (row) => (
            <Link
              href={`/teams/${encodeURIComponent(row.name)}`}
              className="underline decoration-line-strong underline-offset-4 hover:decoration-current"
            >
              {row.name}
            </Link>
          ),
        },
        ...TIMES.map(time),
        {
          ...{ id: "cards", header: "Shares cards", from: "sm", className: "whitespace-nowrap" },
          sort: ({ policy }) => policy.coTenancy,
          cell: ({ policy }) => <Own is={policy.coTenancy !== "any"}>{CARDS[policy.coTenancy]}</Own>,
        },
        {
          ...{ id: "compute", header: "Compute", from: "2xl" },
          sort: ({ policy }) => policy.computeCeiling,
          cell: ({ policy }) => <Own is={policy.computeCeiling !== "none"}>{COMPUTE[policy.computeCeiling]}</Own>,
        },
        {
          ...{ id: "sizes", header: "Custom sizes", from: "2xl" },
          sort: ({ policy }) => sizesOf(policy),
          cell: ({ policy }) => (
            <Own is={policy.customSizes !== null || policy.maxCpuMilli !== null || policy.maxMemoryBytes !== null}>
              {sizesOf(policy)}
            </Own>
          ),
        },
        {
          ...{ id: "attach", header: "On first use", align: "right", from: "xl" },
          sort: (row) => row.attachThemselves,
          cell: (row) => `${row.attachThemselves} of ${row.workspaces}`,
        },
        {
          ...{ id: "edit", header: "Edit", quiet: true, align: "right" },
          cell: (row) => (
            <EditPolicy teamId={row.id} teamName={row.name} policy={row.policy} label={`Edit policy of ${row.name}`}>
              Edit
            </EditPolicy>
          ),
        },
      ]}
    />
  );
}

const sizesOf = ({ customSizes, installation }: TeamPolicyView) => customSizes ?? installation.customSizes;

function time([name, header, from]: (typeof TIMES)[number]): Column<Row> {
  return {
    ...{ id: name, header, align: "right", from },
    sort: ({ policy }) => policy[name] ?? policy.installation[name],
    cell: ({ policy }) => {
      const { text, own } = timeThatCounts(policy, name);
      return <Own is={own}>{text}</Own>;
    },
  };
}

/** What the team says itself, or what it takes from the installation. */
function Own({ is, children }: { is: boolean; children: string }) {
  if (!is) return <span className="text-ink-2">{children}</span>;
  return (
    <span className="font-medium" title="set for this team">
      {children}
      <span className="sr-only"> (set for this team)</span>
    </span>
  );
}
