"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { Button } from "#components/ui/button.tsx";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { Badge } from "#components/ui/state.tsx";
import type { TeamView } from "#server/contracts/team.ts";

type Member = TeamView["members"][number];

/** The people of a team; leads and admins may take someone out. */
export function MemberTable({ team, mayChange }: { team: TeamView; mayChange: boolean }) {
  const router = useRouter();
  const [leaving, setLeaving] = useState<Member>();
  const columns: Column<Member>[] = [
    {
      id: "name",
      header: "Name",
      sort: (row) => row.name,
      cell: (row) => (
        <span className="inline-flex flex-wrap items-center gap-2">
          {row.name} {row.isSample && <Badge>sample</Badge>}
        </span>
      ),
    },
    { id: "email", header: "E-mail", from: "sm", sort: (row) => row.email, cell: (row) => row.email },
    {
      id: "role",
      header: "Role",
      sort: (row) => row.role,
      cell: (row) => (row.role === "lead" ? "team lead" : "member"),
    },
    ...(mayChange
      ? [
          {
            id: "remove",
            header: "Change",
            quiet: true,
            align: "right" as const,
            cell: (row: Member) => (
              <Button size="sm" onClick={() => setLeaving(row)} aria-label={`Remove ${row.name} from the team`}>
                Remove
              </Button>
            ),
          },
        ]
      : []),
  ];
  return (
    <>
      <DataTable caption="People of the team" rows={team.members} columns={columns} rowKey={(row) => row.userId} />
      <Confirm
        open={leaving !== undefined}
        onOpenChange={(open) => {
          if (!open) setLeaving(undefined);
        }}
        title={`Remove ${leaving?.name ?? ""} from ${team.name}?`}
        loses="They can no longer launch or borrow for this team. The account and its workspaces stay."
        confirmLabel="Remove from team"
        pendingLabel="Removing"
        act={async () => {
          const result = await api("DELETE", `/teams/${team.id}/members/${leaving?.userId}`);
          router.refresh();
          return result.ok ? undefined : result.error.message;
        }}
      />
    </>
  );
}
