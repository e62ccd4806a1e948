"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { formatAmount, formatExact } from "#components/format.ts";
import { useTimeZone } from "#components/time-zone/time-zone-context.tsx";
import { Button } from "#components/ui/button.tsx";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { ExactTime } from "#components/ui/time.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { ReservationView } from "#server/contracts/sharing.ts";

type Row = ReservationView & { teamName: string; mayRemove: boolean };

/** Reservations that have not ended, the next one first. */
export function ReservationTable({ reservations, showTeam }: { reservations: Row[]; showTeam?: boolean }) {
  const router = useRouter();
  const toast = useToast();
  const zone = useTimeZone();
  const [leaving, setLeaving] = useState<Row>();
  const columns: Column<Row>[] = [
    ...(showTeam
      ? [{ id: "team", header: "Team", sort: (row: Row) => row.teamName, cell: (row: Row) => row.teamName }]
      : []),
    { id: "for", header: "For", cell: (row) => row.userName ?? "All of the team" },
    {
      id: "amount",
      header: "Amount",
      align: "right",
      sort: (row) => row.milli,
      cell: (row) => `${formatAmount(row.milli)} ${row.gpuType}`,
    },
    {
      id: "unit",
      header: "In leases of",
      align: "right",
      from: "md",
      cell: (row) => formatAmount(row.unitMilli),
    },
    { id: "from", header: "From", sort: (row) => row.startsAt, cell: (row) => <ExactTime at={row.startsAt} /> },
    { id: "to", header: "To", sort: (row) => row.endsAt, from: "sm", cell: (row) => <ExactTime at={row.endsAt} /> },
    { id: "note", header: "What for", from: "lg", cell: (row) => row.note },
    ...(reservations.some((row) => row.mayRemove)
      ? [
          {
            id: "remove",
            header: "Cancel",
            quiet: true,
            align: "right" as const,
            cell: (row: Row) =>
              row.mayRemove && (
                <Button
                  size="sm"
                  onClick={() => setLeaving(row)}
                  aria-label={`Cancel the reservation from ${formatExact(row.startsAt, zone)}`}
                >
                  Cancel
                </Button>
              ),
          },
        ]
      : []),
  ];
  return (
    <>
      <DataTable
        caption="Reservations"
        rows={reservations}
        columns={columns}
        rowKey={(row) => row.id}
        initial={{ id: "from" }}
      />
      <Confirm
        open={leaving !== undefined}
        onOpenChange={(open) => !open && setLeaving(undefined)}
        title="Cancel the reservation"
        loses={
          leaving &&
          `${leaving.userName ?? `Team ${leaving.teamName}`} loses ${formatAmount(leaving.milli)} ${leaving.gpuType} from ${formatExact(leaving.startsAt, zone)} to ${formatExact(leaving.endsAt, zone)}; the quota is all there is then. What runs goes on.`
        }
        confirmLabel="Cancel reservation"
        pendingLabel="Cancelling"
        act={async () => {
          const result = await api("DELETE", `/reservations/${leaving?.id}`);
          if (!result.ok) return result.error.message;
          toast("The reservation is cancelled.");
          router.refresh();
          return undefined;
        }}
      />
    </>
  );
}
