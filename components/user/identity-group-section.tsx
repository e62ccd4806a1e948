"use client";

import { useRouter } from "next/navigation";
import { lazy, useState } from "react";
import { api } from "#components/api.ts";
import { Button } from "#components/ui/button.tsx";
import { DataTable } from "#components/ui/data-table.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { DialogButton } from "#components/ui/dialog-button.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { Section } from "#components/ui/page.tsx";
import type { IdentityGroupView } from "#server/contracts/identity-group.ts";

const IdentityGroupForm = lazy(() => import("./identity-group-form.tsx"));

type Props = { groups: IdentityGroupView[]; claim: string; teams: { id: string; name: string }[] };

const GIVES = { admin: "admin", lead: "team lead", member: "member" };

/** What groups of the identity provider give here, for admins. */
export function IdentityGroupSection({ groups, claim, teams }: Props) {
  const router = useRouter();
  const [leaving, setLeaving] = useState<IdentityGroupView>();
  return (
    <Section
      title="Groups of the identity provider"
      detail={`Listed in the claim ${claim} of a person's ID token. They count from each sign-in; what was given by hand stays.`}
      actions={
        <DialogButton dialog={(close) => <IdentityGroupForm teams={teams} onClose={close} />}>Add group</DialogButton>
      }
    >
      {groups.length === 0 ? (
        <EmptyState title="No group has rights yet">
          Add one, and its people get an account and their team when they first sign in.
        </EmptyState>
      ) : (
        <DataTable
          caption="Groups of the identity provider"
          rows={groups}
          rowKey={(row) => row.id}
          columns={[
            { id: "name", header: "Group", sort: (row) => row.name, cell: (row) => <code>{row.name}</code> },
            {
              id: "gives",
              header: "Gives",
              cell: (row) => (row.teamName === null ? GIVES[row.role] : `${GIVES[row.role]} of ${row.teamName}`),
            },
            {
              id: "remove",
              header: "Remove",
              quiet: true,
              align: "right",
              cell: (row) => (
                <Button size="sm" onClick={() => setLeaving(row)} aria-label={`Remove ${row.name}`}>
                  Remove
                </Button>
              ),
            },
          ]}
        />
      )}
      <Confirm
        open={leaving !== undefined}
        onOpenChange={(open) => {
          if (!open) setLeaving(undefined);
        }}
        title={`Remove ${leaving?.name ?? ""}?`}
        loses="Its people lose what it gives at their next sign-in: in a team they leave, their workspaces stop."
        confirmLabel="Remove group"
        pendingLabel="Removing"
        act={async () => {
          const result = await api("DELETE", `/identity-groups/${leaving?.id}`);
          router.refresh();
          return result.ok ? undefined : result.error.message;
        }}
      />
    </Section>
  );
}
