"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { formatCount, plural } from "#components/format.ts";
import { Button } from "#components/ui/button.tsx";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { Link } from "#components/ui/link.tsx";
import { State, type Tone } from "#components/ui/state.tsx";
import { RelativeTime } from "#components/ui/time.tsx";
import type { ImageVersionView } from "#server/contracts/image.ts";
import { VersionState } from "./version-state.tsx";

const BUILDS: Record<ImageVersionView["buildState"], { tone: Tone; word: string }> = {
  ready: { tone: "ok", word: "built" },
  building: { tone: "busy", word: "being built" },
  pending: { tone: "idle", word: "not built yet" },
  failed: { tone: "bad", word: "build failed" },
};

const columns: Column<ImageVersionView>[] = [
  {
    id: "title",
    header: "Environment",
    sort: (row) => row.image.title,
    cell: (row) => (
      <Link href={`/environments/${row.id}`} className="font-medium underline underline-offset-4">
        {row.proposed?.title ?? row.image.title}
      </Link>
    ),
  },
  {
    id: "version",
    header: "Version",
    from: "md",
    cell: (row) => (
      <>
        <code>{row.version}</code>
        <span className="block text-sm text-ink-2">
          <RelativeTime at={row.createdAt} />
        </span>
      </>
    ),
  },
  {
    id: "state",
    header: "State",
    sort: (row) => row.state,
    cell: (row) => <VersionState version={row} />,
  },
  {
    id: "build",
    header: "Build",
    from: "sm",
    sort: (row) => row.buildState,
    cell: (row) => <State tone={BUILDS[row.buildState].tone}>{BUILDS[row.buildState].word}</State>,
  },
  {
    id: "packages",
    header: "Packages",
    align: "right",
    from: "md",
    sort: (row) => row.packageCount ?? -1,
    cell: (row) => (row.packageCount === null ? "–" : formatCount(row.packageCount)),
  },
  {
    id: "workspaces",
    header: "Workspaces",
    align: "right",
    from: "sm",
    sort: (row) => row.workspaces,
    cell: (row) => formatCount(row.workspaces),
  },
  {
    id: "actions",
    header: "Retire or approve",
    quiet: true,
    align: "right",
    cell: (row) => <ChangeState version={row} />,
  },
];

/** The versions of all environments; an admin retires what shall not be launched any more. */
export function VersionTable({ versions, isAdmin }: { versions: ImageVersionView[]; isAdmin: boolean }) {
  const shown = isAdmin ? columns : columns.filter(({ id }) => id !== "actions");
  return <DataTable caption="Environments" rows={versions} columns={shown} rowKey={(row) => row.id} />;
}

function ChangeState({ version }: { version: ImageVersionView }) {
  const router = useRouter();
  const [asking, setAsking] = useState(false);
  const { id, image, offered, newest, workspaces } = version;
  if (!newest) return null;
  const retires = offered;
  const act = async () => {
    const state = retires ? "retired" : "approved";
    const result = await api("PUT", `/image-versions/${id}/state`, { state });
    router.refresh();
    return result.ok ? undefined : result.error.message;
  };
  return (
    <>
      <Button
        size="sm"
        onClick={() => setAsking(true)}
        aria-label={retires ? `Retire ${image.title}` : `Approve ${image.title} again`}
      >
        {retires ? "Retire" : "Approve"}
      </Button>
      <Confirm
        open={asking}
        onOpenChange={setAsking}
        danger={retires}
        title={retires ? `Retire ${image.title}?` : `Approve ${image.title} again?`}
        loses={
          retires
            ? `Nobody can launch with it any more. ${workspaces === 0 ? "No workspace has it." : `${plural(workspaces, "workspace")} with it ${workspaces === 1 ? "goes" : "go"} on, and can be started again.`}`
            : "Whoever found it on the launch page before finds it there again, in the version that was theirs."
        }
        confirmLabel={retires ? "Retire environment" : "Approve environment"}
        pendingLabel={retires ? "Retiring" : "Approving"}
        act={act}
      />
    </>
  );
}
