"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { Button } from "#components/ui/button.tsx";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { RelativeTime, Remaining } from "#components/ui/time.tsx";
import type { PendingInvitation } from "#server/contracts/user.ts";

/** Who was invited into a team and has not come yet; a link that went astray is ended here. */
export function InvitationTable({ teamId, invitations }: { teamId: string; invitations: PendingInvitation[] }) {
  const router = useRouter();
  const [ending, setEnding] = useState<PendingInvitation>();
  const columns: Column<PendingInvitation>[] = [
    { id: "email", header: "E-mail", sort: (row) => row.email, cell: (row) => row.email },
    {
      id: "role",
      header: "Role",
      from: "sm",
      sort: (row) => row.role,
      cell: (row) => (row.role === "lead" ? "team lead" : "member"),
    },
    {
      id: "invited",
      header: "Invited",
      from: "sm",
      sort: (row) => row.invitedAt,
      cell: (row) => <RelativeTime at={row.invitedAt} />,
    },
    {
      id: "expires",
      header: "Link works for",
      sort: (row) => row.expiresAt,
      cell: (row) => <Remaining until={row.expiresAt} />,
    },
    {
      id: "end",
      header: "End",
      quiet: true,
      align: "right",
      cell: (row) => (
        <Button size="sm" aria-label={`Revoke the invitation of ${row.email}`} onClick={() => setEnding(row)}>
          Revoke
        </Button>
      ),
    },
  ];
  return (
    <>
      <DataTable caption="Invitations" rows={invitations} columns={columns} rowKey={(row) => row.id} />
      <Confirm
        open={ending !== undefined}
        onOpenChange={(open) => {
          if (!open) setEnding(undefined);
        }}
        title={`Revoke the invitation of ${ending?.email ?? ""}?`}
        loses="The link that was sent opens nothing any more. They can be invited again."
        confirmLabel="Revoke"
        pendingLabel="Revoking"
        act={async () => {
          const result = await api("DELETE", `/teams/${teamId}/invitations/${ending?.id}`);
          router.refresh();
          return result.ok ? undefined : result.error.message;
        }}
      />
    </>
  );
}
