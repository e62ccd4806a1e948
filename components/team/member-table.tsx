"use client";

import { MoreHorizontal } from "lucide-react";
import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { IconButton } from "#components/ui/button.tsx";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { Menu, MenuItem } from "#components/ui/menu.tsx";
import { Badge } from "#components/ui/state.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { TeamView } from "#server/contracts/team.ts";

type Member = TeamView["members"][number];

/** The people of a team; leads and admins change roles and take someone out. */
export function MemberTable({ team, mayChange }: { team: TeamView; mayChange: boolean }) {
  const router = useRouter();
  const toast = useToast();
  const [leaving, setLeaving] = useState<Member>();
  const setRole = async ({ email, name, version }: Member, role: Member["role"]) => {
    const result = await api("POST", `/teams/${team.id}/members`, { email, role, version });
    router.refresh();
    if (result.ok) toast(`${name} is now ${role === "lead" ? "a team lead" : "a member"}.`);
    else toast(result.error.message, "bad");
  };
  const columns: Column<Member>[] = [
    {
      id: "name",
      header: "Name",
      sort: (row) => row.name,
      cell: (row) => (
        <span className="inline-flex flex-wrap items-center gap-2">
          {row.name} {row.isSample && <Badge>sample</Badge>} {row.byGroup && <Badge>by group</Badge>}
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
            id: "change",
            header: "Change",
            quiet: true,
            align: "right" as const,
            cell: (row: Member) => (
              <Menu
                trigger={
                  <IconButton label={`More for ${row.name}`} className="size-7">
                    <MoreHorizontal aria-hidden="true" className="size-4" />
                  </IconButton>
                }
              >
                {row.role === "lead" ? (
                  <MenuItem onSelect={() => void setRole(row, "member")}>Make a member</MenuItem>
                ) : (
                  <MenuItem onSelect={() => void setRole(row, "lead")}>Make a team lead</MenuItem>
                )}
                <MenuItem danger onSelect={() => setLeaving(row)}>
                  Remove from team
                </MenuItem>
              </Menu>
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
        loses="Their workspaces of this team stop and give their GPUs back; files stay. What is reserved for them alone is given up. They can no longer launch or borrow for it."
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
