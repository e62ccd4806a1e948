"use client";

import { useRouter } from "next/navigation";
import { lazy, useState } from "react";
import { api } from "#components/api.ts";
import { formatBytes, plural } from "#components/format.ts";
import { Button } from "#components/ui/button.tsx";
import { DataTable } from "#components/ui/data-table.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { DialogButton } from "#components/ui/dialog-button.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { Section } from "#components/ui/page.tsx";
import type { SizeView } from "#server/contracts/workspace-size.ts";

const OfferForm = lazy(() => import("./offer-form.tsx"));

type Team = { id: string; name: string };

/** The sizes that are offered, for admins to change. */
export function SizeSection({ sizes, teams }: { sizes: SizeView[]; teams: Team[] }) {
  const router = useRouter();
  const [leaving, setLeaving] = useState<SizeView>();
  const forWhom = ({ teamIds }: SizeView) =>
    teamIds === null ? "everybody" : teams.flatMap(({ id, name }) => (teamIds.includes(id) ? [name] : [])).join(", ");
  return (
    <Section
      title="Offered"
      detail="In the order of the launch page. A change applies to workspaces from their next start. Workspaces of a removed size keep their cores and memory."
      actions={<DialogButton dialog={(close) => <OfferForm teams={teams} onClose={close} />}>Add size</DialogButton>}
    >
      {sizes.length === 0 ? (
        <EmptyState title="No size is offered">
          Workspaces get what their launcher gives to all. Add a size, and people choose.
        </EmptyState>
      ) : (
        <DataTable
          caption="Sizes of workspaces"
          rows={sizes}
          rowKey={(row) => row.id}
          columns={[
            {
              id: "name",
              header: "Size",
              sort: (row) => row.position,
              cell: (row) => (
                <>
                  <span className="font-medium">{row.name}</span>
                  {row.isDefault && <span className="ml-2 text-sm text-ink-2">default</span>}
                  {row.description && <span className="block text-sm text-ink-2">{row.description}</span>}
                </>
              ),
            },
            {
              id: "cores",
              header: "Cores",
              align: "right",
              sort: (row) => row.cpuMilli,
              cell: (row) => row.cpuMilli / 1000,
            },
            {
              id: "memory",
              header: "Memory",
              align: "right",
              sort: (row) => row.memoryBytes,
              cell: (row) => formatBytes(row.memoryBytes),
            },
            { id: "for", header: "Offered to", from: "sm", cell: forWhom },
            {
              id: "uses",
              header: "Workspaces",
              align: "right",
              from: "md",
              sort: (row) => row.workspaces ?? 0,
              cell: (row) => row.workspaces,
            },
            {
              id: "act",
              header: "Change",
              quiet: true,
              align: "right",
              cell: (row) => (
                <span className="flex flex-wrap justify-end gap-2">
                  <DialogButton
                    size="sm"
                    aria-label={`Edit ${row.name}`}
                    dialog={(close) => <OfferForm size={row} teams={teams} onClose={close} />}
                  >
                    Edit
                  </DialogButton>
                  {!row.isDefault && (
                    <Button size="sm" onClick={() => setLeaving(row)} aria-label={`Remove ${row.name}`}>
                      Remove
                    </Button>
                  )}
                </span>
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
        loses={`Nobody can choose it any more. ${plural(leaving?.workspaces ?? 0, "workspace")} with it keep their cores and memory.`}
        confirmLabel="Remove size"
        pendingLabel="Removing"
        act={async () => {
          const result = await api("DELETE", `/workspace-sizes/${leaving?.id}`);
          router.refresh();
          return result.ok ? undefined : result.error.message;
        }}
      />
    </Section>
  );
}
