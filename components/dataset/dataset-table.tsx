"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { formatBytes, formatCount, plural } from "#components/format.ts";
import { Button } from "#components/ui/button.tsx";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { State } from "#components/ui/state.tsx";
import { RelativeTime } from "#components/ui/time.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { DatasetView } from "#server/contracts/dataset.ts";
import { EditDataset } from "./register-dataset.tsx";
import { KINDS, placeOf } from "./source-words.ts";

const columns: Column<DatasetView>[] = [
  {
    id: "name",
    header: "Name",
    sort: (row) => row.name,
    cell: (row) => (
      <div className="min-w-36 max-w-md">
        <p className="font-medium break-all">{row.name}</p>
        {row.description && <p className="text-sm text-ink-2">{row.description}</p>}
        {row.source && (
          <p className="text-sm break-all text-ink-2">
            <code>{placeOf(row.source)}</code>
          </p>
        )}
      </div>
    ),
  },
  {
    id: "team",
    header: "For",
    from: "sm",
    sort: (row) => row.team?.name ?? "",
    cell: (row) => (row.team === null ? "everybody" : `team ${row.team.name}`),
  },
  { id: "kind", header: "Kind", from: "md", sort: (row) => row.kind, cell: (row) => KINDS[row.kind].name },
  {
    id: "access",
    header: "Access",
    from: "lg",
    sort: (row) => (row.writable ? 1 : 0),
    cell: (row) => (row.writable ? "may be written to" : "read-only"),
  },
  {
    id: "size",
    header: "Size",
    align: "right",
    sort: (row) => row.sizeBytes ?? -1,
    cell: (row) => <Size dataset={row} />,
  },
  {
    id: "workspaces",
    header: "Workspaces",
    align: "right",
    from: "md",
    sort: (row) => row.workspaces,
    cell: (row) => (
      <>
        {formatCount(row.workspaces)}
        {row.inMemoryFor > 0 && <p className="text-sm text-ink-2">in memory for {formatCount(row.inMemoryFor)}</p>}
      </>
    ),
  },
];

/** The datasets that one may see; who registered them, or answers for their team, edits and removes them here. */
export function DatasetTable({ datasets }: { datasets: DatasetView[] }) {
  const actions: Column<DatasetView> = {
    id: "actions",
    header: "Measure, edit or remove",
    quiet: true,
    align: "right",
    cell: (row) => row.canChange && <Actions dataset={row} />,
  };
  return (
    <DataTable
      caption="Datasets"
      rows={datasets}
      columns={datasets.some(({ canChange }) => canChange) ? [...columns, actions] : columns}
      rowKey={(row) => row.id}
      filter={datasets.length > 8 ? (row) => `${row.name} ${row.description} ${row.team?.name ?? ""}` : undefined}
      initial={{ id: "name" }}
    />
  );
}

function Size({ dataset: { kind, sizeBytes, fileCount, measuredAt, measureMessage } }: { dataset: DatasetView }) {
  if (measureMessage !== null) {
    return (
      <div className="ml-auto max-w-60 text-left whitespace-normal">
        <State tone="bad">not measured</State>
        <p className="text-sm text-ink-2">{measureMessage}</p>
      </div>
    );
  }
  if (kind === "folder" && measuredAt === null) return <State tone="busy">measuring</State>;
  if (sizeBytes === null) return <>not told</>;
  return (
    <>
      <p>{formatBytes(sizeBytes)}</p>
      <p className="text-sm text-ink-2">
        {measuredAt === null ? (
          "as told"
        ) : (
          <>
            {plural(fileCount ?? 0, "file")}, <RelativeTime at={measuredAt} />
          </>
        )}
      </p>
    </>
  );
}

function Actions({ dataset }: { dataset: DatasetView }) {
  const router = useRouter();
  const toast = useToast();
  const [removing, setRemoving] = useState(false);
  const { id, name, kind, workspaces } = dataset;
  const measure = async () => {
    const result = await api("POST", `/datasets/${id}/measure`, {});
    if (!result.ok) toast(result.error.message);
    router.refresh();
  };
  return (
    <div className="flex flex-wrap justify-end gap-1.5">
      {kind === "folder" && (
        <Button size="sm" onClick={() => void measure()} aria-label={`Measure ${name} again`}>
          Measure
        </Button>
      )}
      <EditDataset dataset={dataset} />
      <Button size="sm" onClick={() => setRemoving(true)} aria-label={`Remove ${name}`}>
        Remove
      </Button>
      <Confirm
        open={removing}
        onOpenChange={setRemoving}
        title={`Remove ${name}?`}
        loses={`Its files stay where they are. ${
          workspaces === 0
            ? "No workspace mounts it."
            : `${plural(workspaces, "workspace")} will be without it from the next start on.`
        }`}
        confirmLabel="Remove dataset"
        pendingLabel="Removing"
        act={async () => {
          const result = await api("DELETE", `/datasets/${id}`);
          router.refresh();
          return result.ok ? undefined : result.error.message;
        }}
      />
    </div>
  );
}
