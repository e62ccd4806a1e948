"use client";

import { useState } from "react";
import { formatAmount, formatExact } from "#components/format.ts";
import { useTimeZone } from "#components/time-zone/time-zone-context.tsx";
import { Button } from "#components/ui/button.tsx";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { ExactTime } from "#components/ui/time.tsx";
import type { ReservationView } from "#server/contracts/sharing.ts";
import { CancelReservation } from "./cancel-reservation.tsx";
import { type Series, seriesOf } from "./series.ts";

type Reservation = ReservationView & { teamName: string; mayRemove: boolean };
type Row = Series<Reservation>;

/** Reservations that have not ended, the next one first; those that repeat are one row, with their next time. */
export function ReservationTable({ reservations, showTeam }: { reservations: Reservation[]; showTeam?: boolean }) {
  const zone = useTimeZone();
  const [leaving, setLeaving] = useState<Row>();
  const columns: Column<Row>[] = [
    ...(showTeam
      ? [
          {
            id: "team",
            header: "Team",
            sort: ({ next }: Row) => next.teamName,
            cell: ({ next }: Row) => (
              <>
                {next.teamName}
                <span className="block text-sm text-ink-2 sm:hidden">{next.userName ?? "all of it"}</span>
              </>
            ),
          },
        ]
      : []),
    {
      id: "for",
      header: "For",
      from: showTeam ? "sm" : undefined,
      cell: ({ next }) => next.userName ?? "All of the team",
    },
    {
      id: "amount",
      header: "Amount",
      align: "right",
      sort: ({ next }) => next.milli,
      cell: ({ next }) => `${formatAmount(next.milli)} ${next.gpuType}`,
    },
    {
      id: "unit",
      header: "In leases of",
      align: "right",
      from: "md",
      cell: ({ next }) => formatAmount(next.unitMilli),
    },
    {
      id: "from",
      header: "From",
      sort: ({ next }) => next.startsAt,
      cell: ({ next, following }) => (
        <>
          <ExactTime at={next.startsAt} />
          <Weekly following={following} />
        </>
      ),
    },
    {
      id: "to",
      header: "To",
      sort: ({ next }) => next.endsAt,
      from: "sm",
      cell: ({ next }) => <ExactTime at={next.endsAt} />,
    },
    { id: "note", header: "What for", from: "lg", cell: ({ next }) => next.note },
    ...(reservations.some((row) => row.mayRemove)
      ? [
          {
            id: "remove",
            header: "Cancel",
            quiet: true,
            align: "right" as const,
            cell: (row: Row) =>
              row.next.mayRemove && (
                <Button
                  size="sm"
                  onClick={() => setLeaving(row)}
                  aria-label={`Cancel the reservation from ${formatExact(row.next.startsAt, zone)}`}
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
        rows={seriesOf(reservations)}
        columns={columns}
        rowKey={({ next }) => next.id}
        initial={{ id: "from" }}
      />
      {leaving && (
        <CancelReservation series={leaving} teamName={leaving.next.teamName} onClose={() => setLeaving(undefined)} />
      )}
    </>
  );
}

/** Until when a reservation repeats, and how many times are left with the next one; nothing of one that is alone. */
function Weekly({ following }: Pick<Row, "following">) {
  const zone = useTimeZone();
  const last = following.at(-1);
  if (last === undefined) return null;
  const date = formatExact(last.startsAt, zone).slice(0, 10);
  return (
    <span className="figures block text-sm text-ink-2">
      weekly until <span className="whitespace-nowrap">{date}</span>, {following.length + 1} times
    </span>
  );
}
