"use client";

import { formatAmount, formatBytes, formatCount, formatDuration } from "#components/format.ts";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { Link } from "#components/ui/link.tsx";
import { Badge } from "#components/ui/state.tsx";
import { Age, RelativeTime } from "#components/ui/time.tsx";
import type { LeaseListItem } from "#server/contracts/gpu-server.ts";
import { EndLease } from "./end-lease.tsx";
import { EndsIn, endOf } from "./ends-in.tsx";
import { ExtendLease } from "./extend-lease.tsx";
import { LeaseState } from "./lease-state.tsx";
import { ownerLabel } from "./owner-label.ts";

/** How far a kernel has come, as `%gpu` says it; its name alone where the device does not tell. */
function progress({ kernel, blocksDone, blocks }: NonNullable<LeaseListItem["running"]>): string {
  // "a graph with matmul" is no kernel's name.
  const what = kernel.includes(" ") ? kernel : `kernel ${kernel}`;
  return blocks === 0 ? what : `${what}: ${formatCount(blocksDone)} of ${formatCount(blocks)} blocks`;
}

type Extra = "notebook" | "holder" | "team" | "ended" | "extend" | "end";

/** Leases: amount, where, memory, times, and what else the page asks for. */
export function LeaseTable({ caption, leases, show }: { caption: string; leases: LeaseListItem[]; show: Extra[] }) {
  const has = (extra: Extra) => show.includes(extra);
  const columns: Column<LeaseListItem>[] = [
    {
      id: "amount",
      header: "Amount",
      align: "right",
      sort: (row) => row.milli,
      cell: (row) => (
        <span className="font-medium">
          {formatAmount(row.milli)} {row.gpuType}
        </span>
      ),
    },
    ...when(has("holder"), {
      id: "holder",
      header: "Held by",
      sort: (row) => row.userName,
      cell: (row) => (
        <div className="min-w-28">
          {row.userName}
          <p className="text-sm text-ink-2">
            {row.workspaceName}, {ownerLabel(row)}
          </p>
        </div>
      ),
    }),
    ...when(has("team"), {
      id: "team",
      header: "Team",
      from: "md",
      sort: (row) => row.teamName,
      cell: (row) => row.teamName,
    }),
    ...when(has("notebook"), {
      id: "notebook",
      header: "Notebook",
      sort: ownerLabel,
      cell: (row) => (
        <div className="min-w-24">
          {ownerLabel(row)}
          {!has("ended") && (
            <p className="text-sm text-ink-2">
              {row.workspaceId.startsWith("pod-") ? (
                row.workspaceName
              ) : (
                <Link href={`/workspaces/${row.workspaceId}`} className="underline-offset-4 hover:underline">
                  {row.workspaceName}
                </Link>
              )}
            </p>
          )}
        </div>
      ),
    }),
    {
      id: "state",
      header: "State",
      // One's own are active as a rule, and narrow screens have to hold what can be done with them.
      ...(has("extend") && { from: "md" as const }),
      sort: (row) => row.state,
      cell: (row) => (
        <span className="inline-flex flex-wrap items-center gap-x-2 gap-y-0.5">
          <LeaseState lease={row} />
          {row.borrowed && row.state !== "ended" && <Badge tone="warn">borrowed</Badge>}
          {row.running !== null && <span className="basis-full text-sm text-ink-2">{progress(row.running)}</span>}
        </span>
      ),
    },
    {
      id: "device",
      header: "Device",
      from: "lg",
      sort: (row) => `${row.serverName} ${row.deviceName}`,
      cell: (row) => `${row.deviceName} on ${row.serverName}`,
    },
    {
      id: "memory",
      header: "Memory",
      align: "right",
      from: "md",
      sort: (row) => row.usedMemoryBytes,
      cell: (row) =>
        row.state === "ended" ? (
          formatBytes(row.memoryBytes)
        ) : (
          <span>
            {formatBytes(row.usedMemoryBytes)} <span className="text-ink-2">of {formatBytes(row.memoryBytes)}</span>
          </span>
        ),
    },
    {
      id: "compute",
      header: "GPU time",
      align: "right",
      from: "xl",
      sort: (row) => row.gpuTimeUs,
      cell: (row) => formatGpuTime(row.gpuTimeUs),
    },
    {
      id: "granted",
      header: has("ended") ? "Borrowed" : "Held for",
      align: "right",
      from: "sm",
      sort: (row) => row.grantedAt,
      cell: (row) => (has("ended") ? <RelativeTime at={row.grantedAt} /> : <Age from={row.grantedAt} />),
    },
    ...when(has("ended"), {
      id: "held",
      header: "Held for",
      align: "right",
      from: "lg",
      cell: (row) =>
        row.endedAt ? (
          formatDuration(Date.parse(row.endedAt) - Date.parse(row.grantedAt))
        ) : (
          <Age from={row.grantedAt} />
        ),
    }),
    ...when(!has("ended") || leases.some(({ state }) => state !== "ended"), {
      id: "ends",
      header: "Ends",
      align: "right",
      ...(has("ended") && { from: "md" as const }),
      sort: endOf,
      cell: (row) => (row.state === "ended" ? <span className="text-ink-2">–</span> : <EndsIn lease={row} rows />),
    }),
    ...when(has("end"), {
      id: "end",
      header: has("extend") ? "Extend or give back" : "End",
      quiet: true,
      align: "right",
      cell: (row) => (
        <span className="inline-flex flex-wrap justify-end gap-2">
          {has("extend") && <ExtendLease lease={row} />}
          <EndLease lease={row} />
        </span>
      ),
    }),
  ];
  return (
    <DataTable
      caption={caption}
      rows={leases}
      columns={columns}
      rowKey={(row) => row.id}
      filter={
        leases.length > 8
          ? (row) =>
              `${row.userName} ${row.teamName} ${row.workspaceName} ${ownerLabel(row)} ${row.deviceName} ${row.serverName} ${row.state} ${row.endReason ?? ""}`
          : undefined
      }
      filterLabel="Filter leases"
    />
  );
}

function when(condition: boolean, column: Column<LeaseListItem>): Column<LeaseListItem>[] {
  return condition ? [column] : [];
}

/** GPU time that was measured: `0.38 s`, `12 min`. */
function formatGpuTime(us: number): string {
  return us < 60_000_000 ? `${(us / 1_000_000).toFixed(2)} s` : formatDuration(us / 1000);
}
