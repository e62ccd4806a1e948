"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { Button } from "#components/ui/button.tsx";
import { DataTable } from "#components/ui/data-table.tsx";
import { RelativeTime } from "#components/ui/time.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { TeamList } from "#server/contracts/team.ts";

type Archived = TeamList["archived"][number];

/** Teams that were put away, each to be brought back. */
export function ArchivedTable({ teams }: { teams: Archived[] }) {
  return (
    <DataTable
      caption="Archived teams"
      rows={teams}
      columns={[
        { id: "team", header: "Team", sort: (team) => team.name, cell: (team) => team.name },
        {
          id: "since",
          header: "Since",
          sort: (team) => Date.parse(team.archivedAt),
          cell: (team) => <RelativeTime at={team.archivedAt} />,
        },
        {
          id: "restore",
          header: "Bring back",
          quiet: true,
          align: "right",
          cell: (team) => <Restore team={team} />,
        },
      ]}
      rowKey={(team) => team.id}
      initial={{ id: "team" }}
    />
  );
}

function Restore({ team }: { team: Archived }) {
  const router = useRouter();
  const toast = useToast();
  const [pending, setPending] = useState(false);
  const restore = async () => {
    setPending(true);
    const result = await api("POST", `/teams/${team.id}/restore`);
    setPending(false);
    if (!result.ok) return toast(result.error.message, "bad");
    toast(`Team ${team.name} is back. Add its people and quotas on its page.`);
    router.refresh();
  };
  return (
    <Button
      size="sm"
      pending={pending}
      pendingLabel="Bringing back"
      aria-label={`Bring back ${team.name}`}
      onClick={() => void restore()}
    >
      Bring back
    </Button>
  );
}
