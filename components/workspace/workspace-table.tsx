"use client";

import { formatBytes, formatCores } from "#components/format.ts";
import { amountsOf } from "#components/lease/amounts.ts";
import { EndsIn, endOf } from "#components/lease/ends-in.tsx";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { Link } from "#components/ui/link.tsx";
import { RelativeTime, Remaining } from "#components/ui/time.tsx";
import type { WorkspaceView } from "#server/contracts/workspace.ts";
import { WorkspaceActions } from "./workspace-actions.tsx";
import { describeState, WorkspaceState } from "./workspace-state.tsx";

const heldMilli = (row: WorkspaceView) => row.leases.reduce((sum, lease) => sum + lease.milli, 0);
/** When the first GPU ends: its time is up, it is taken back, or it has been idle for too long. */
const firstEnding = (row: WorkspaceView) => row.leases.toSorted((a, b) => endOf(a).localeCompare(endOf(b)))[0];
const none = <span className="text-ink-2">–</span>;

const captions = { mine: "Workspaces", shared: "Workspaces shared with me", others: "Workspaces of others" };

/** Workspaces with their state, what they use, the two timers, and the way in. */
export function WorkspaceTable({ workspaces, of }: { workspaces: WorkspaceView[]; of: keyof typeof captions }) {
  const withOwner = of !== "mine";
  const columns: Column<WorkspaceView>[] = [
    {
      id: "name",
      header: "Workspace",
      sort: (row) => row.name,
      cell: (row) => (
        <div className="min-w-24">
          <Link href={`/workspaces/${row.id}`} className="font-medium underline-offset-4 hover:underline">
            {row.name}
          </Link>
          <p className="text-sm text-ink-2">
            {row.image.title}
            {of === "shared" && `, ${row.role}`}
            {withOwner && <span className="md:hidden">, {row.owner.name}</span>}
          </p>
        </div>
      ),
    },
    {
      id: "state",
      header: "State",
      sort: (row) => describeState(row).word,
      cell: (row) => (
        <>
          <WorkspaceState workspace={row} />
          <NarrowTimers row={row} />
        </>
      ),
    },
    ...(withOwner
      ? [
          {
            id: "owner",
            header: "Owner",
            from: "md" as const,
            sort: (row: WorkspaceView) => row.owner.name,
            cell: (row: WorkspaceView) => row.owner.name,
          },
        ]
      : []),
    { id: "team", header: "Team", from: "lg", sort: (row) => row.team.name, cell: (row) => row.team.name },
    {
      id: "cpu",
      header: "CPU",
      align: "right",
      from: "md",
      sort: (row) => row.cpuMilli ?? -1,
      cell: (row) => (row.cpuMilli === null ? none : formatCores(row.cpuMilli)),
    },
    {
      id: "memory",
      header: "Memory",
      align: "right",
      from: "md",
      sort: (row) => row.memoryBytes ?? -1,
      cell: (row) => (row.memoryBytes === null ? none : formatBytes(row.memoryBytes)),
    },
    {
      id: "gpu",
      header: "GPU",
      align: "right",
      from: "sm",
      sort: heldMilli,
      cell: (row) =>
        row.leases.length === 0 ? (
          none
        ) : (
          <span title={row.leases.map((lease) => `${lease.deviceName} on ${lease.serverName}`).join(", ")}>
            {amountsOf(row.leases)}
          </span>
        ),
    },
    {
      id: "gpu-left",
      header: "GPU ends",
      align: "right",
      from: "xl",
      sort: (row) => {
        const first = firstEnding(row);
        return first ? endOf(first) : "9999";
      },
      cell: (row) => {
        const first = firstEnding(row);
        return first ? <EndsIn lease={first} rows /> : none;
      },
    },
    {
      id: "activity",
      header: "Last activity",
      align: "right",
      from: "lg",
      sort: (row) => row.lastActivityAt ?? "",
      cell: (row) => (row.lastActivityAt ? <RelativeTime at={row.lastActivityAt} /> : none),
    },
    {
      id: "stops",
      header: "Stops in",
      align: "right",
      from: "lg",
      sort: (row) => row.stopsAt ?? "9999",
      cell: (row) => (row.stopsAt ? <Remaining until={row.stopsAt} /> : none),
    },
    {
      id: "actions",
      header: "Open or change",
      quiet: true,
      align: "right",
      cell: (row) => <WorkspaceActions workspace={row} />,
    },
  ];
  return (
    <DataTable
      caption={captions[of]}
      rows={workspaces}
      columns={columns}
      rowKey={(row) => row.id}
      filter={
        // Those of others are looked for on the server, which has all of them.
        workspaces.length > 3 && of !== "others"
          ? (row) => `${row.name} ${row.image.title} ${row.team.name} ${row.owner.name} ${describeState(row).word}`
          : undefined
      }
      filterLabel={of === "shared" ? "Filter workspaces shared with me" : "Filter workspaces"}
    />
  );
}

/** What stands in columns of its own where there is room for them: the GPU, and when it and the workspace end. */
function NarrowTimers({ row }: { row: WorkspaceView }) {
  const first = firstEnding(row);
  return (
    <>
      {first && (
        <p className="figures text-sm text-ink-2 xl:hidden">
          <span className="sm:hidden">
            {amountsOf(row.leases)}
            {row.leases.length > 1 && ", the first"}
          </span>
          <span className="max-sm:hidden">GPU</span>: <EndsIn lease={first} />
        </p>
      )}
      {row.stopsAt && (
        <p className="figures text-sm text-ink-2 lg:hidden">
          stops in <Remaining until={row.stopsAt} />
        </p>
      )}
    </>
  );
}
