"use client";

import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { Link } from "#components/ui/link.tsx";
import { Badge } from "#components/ui/state.tsx";
import { RelativeTime } from "#components/ui/time.tsx";
import type { UserView } from "#server/contracts/user.ts";
import { PersonActions } from "./person-actions.tsx";

const columns: Column<UserView>[] = [
  {
    id: "name",
    header: "Name",
    sort: (row) => row.name,
    cell: (row) => (
      <span className="inline-flex flex-wrap items-center gap-2">
        <span className="font-medium">{row.name}</span>
        {row.isAdmin && <Badge tone="busy">{row.adminByGroup ? "admin by group" : "admin"}</Badge>}
        {row.isSample && <Badge>sample</Badge>}
        {row.disabled && <Badge tone="bad">deactivated</Badge>}
      </span>
    ),
  },
  { id: "email", header: "E-mail", from: "sm", sort: (row) => row.email, cell: (row) => row.email },
  {
    id: "teams",
    header: "Teams",
    sort: (row) => row.teams.map((team) => team.name).join(),
    cell: (row) =>
      row.teams.length === 0 ? (
        <span className="text-ink-2">none</span>
      ) : (
        row.teams.map((team, index) => (
          <span key={team.id}>
            {index > 0 && ", "}
            <Link href={`/teams/${team.name}`} className="underline-offset-4 hover:underline">
              {team.name}
            </Link>
            {team.role === "lead" && <span className="text-ink-2"> (lead)</span>}
          </span>
        ))
      ),
  },
  {
    id: "since",
    header: "Here since",
    align: "right",
    from: "md",
    sort: (row) => row.createdAt,
    cell: (row) => <RelativeTime at={row.createdAt} />,
  },
];

/** Everybody with an account; what an admin may do with each but the own one. */
export function PeopleTable({ users, ownId }: { users: UserView[]; ownId: string }) {
  const actions: Column<UserView> = {
    ...{ id: "actions", header: "Change", quiet: true, align: "right" },
    cell: (row) => row.id !== ownId && <PersonActions person={row} />,
  };
  return <DataTable caption="People" rows={users} columns={[...columns, actions]} rowKey={(row) => row.id} />;
}
