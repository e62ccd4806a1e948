"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { Button } from "#components/ui/button.tsx";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { Badge } from "#components/ui/state.tsx";
import { RelativeTime } from "#components/ui/time.tsx";
import type { WorkspaceView } from "#server/contracts/workspace.ts";
import type { WorkspaceCollaborators } from "#server/contracts/workspace-collaborator.ts";
import { ChangeRole } from "./invite-collaborator.tsx";

type Collaborator = WorkspaceCollaborators["collaborators"][number];

/** The people of a workspace beside its owner: who may take one out does it here, and whoever is one leaves. */
export function CollaboratorTable({
  workspace,
  collaborators,
  me,
}: {
  workspace: WorkspaceView;
  collaborators: Collaborator[];
  /** Whoever looks. */
  me: string;
}) {
  const router = useRouter();
  const [going, setGoing] = useState<Collaborator>();
  const { id, name, can } = workspace;
  const leaves = going?.userId === me;
  const columns: Column<Collaborator>[] = [
    {
      id: "name",
      header: "Name",
      sort: (row) => row.name,
      cell: (row) => (
        <span className="inline-flex flex-wrap items-center gap-2">
          {row.name} {row.userId === me && <Badge>you</Badge>} {row.disabled && <Badge>cannot sign in</Badge>}
        </span>
      ),
    },
    { id: "email", header: "E-mail", from: "md", sort: (row) => row.email, cell: (row) => row.email },
    { id: "role", header: "Role", sort: (row) => row.role, cell: (row) => row.role },
    {
      id: "since",
      header: "Since",
      align: "right",
      from: "sm",
      sort: (row) => row.since,
      cell: (row) => <RelativeTime at={row.since} />,
    },
    {
      id: "actions",
      header: "Change, remove or leave",
      quiet: true,
      align: "right",
      cell: (row) => (
        <div className="flex justify-end gap-1.5">
          {can.change && <ChangeRole workspace={workspace} collaborator={row} />}
          {(can.unshare || row.userId === me) && (
            <Button
              size="sm"
              onClick={() => setGoing(row)}
              aria-label={row.userId === me ? `Leave ${name}` : `Remove ${row.name} from ${name}`}
            >
              {row.userId === me ? "Leave" : "Remove"}
            </Button>
          )}
        </div>
      ),
    },
  ];
  return (
    <>
      <DataTable caption="Collaborators" rows={collaborators} columns={columns} rowKey={(row) => row.userId} />
      <Confirm
        open={going !== undefined}
        onOpenChange={(open) => {
          if (!open) setGoing(undefined);
        }}
        title={leaves ? `Leave ${name}?` : `Remove ${going?.name ?? ""} from ${name}?`}
        loses={
          leaves
            ? `What you have open there closes, and only ${workspace.owner.name} can let you in again.`
            : `What they have open here closes at once.${
                going?.role === "editor"
                  ? " What they have started goes on: restart the workspace to end it, and change secrets that its code could read."
                  : ""
              }`
        }
        confirmLabel={leaves ? "Leave workspace" : "Remove collaborator"}
        pendingLabel={leaves ? "Leaving" : "Removing"}
        act={async () => {
          const result = await api("DELETE", `/workspaces/${id}/collaborators/${going?.userId}`);
          if (result.ok && leaves) router.push("/workspaces");
          else router.refresh();
          return result.ok ? undefined : result.error.message;
        }}
      />
    </>
  );
}
