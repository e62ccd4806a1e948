"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { formatAmount, formatExact } from "#components/format.ts";
import { useTimeZone } from "#components/time-zone/time-zone-context.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { Select } from "#components/ui/field.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { ReservationView } from "#server/contracts/sharing.ts";
import type { Series } from "./series.ts";

/** Gives a reservation up; of a series any one of them, alone or with all that follow it. Render it only while it is asked. */
export function CancelReservation({
  series: { next, following },
  teamName,
  onClose,
}: {
  series: Series<ReservationView>;
  teamName: string;
  onClose: () => void;
}) {
  const router = useRouter();
  const toast = useToast();
  const zone = useTimeZone();
  const [at, setAt] = useState(0);
  const [withLater, setWithLater] = useState(false);
  const all = [next, ...following];
  const from = all[at] ?? next;
  const later = all.length - 1 - at;
  const count = withLater ? 1 + later : 1;
  const when =
    count === 1
      ? `from ${formatExact(from.startsAt, zone)} to ${formatExact(from.endsAt, zone)}`
      : `${count} times, from ${formatExact(from.startsAt, zone)} on`;
  return (
    <Confirm
      open
      onOpenChange={onClose}
      title="Cancel the reservation"
      loses={`${from.userName ?? `Team ${teamName}`} loses ${formatAmount(from.milli)} ${from.gpuType} ${when}; the quota is all there is then. What runs goes on.`}
      confirmLabel={count === 1 ? "Cancel reservation" : `Cancel ${count} reservations`}
      pendingLabel="Canceling"
      dismissLabel="Keep reservation"
      act={async () => {
        const result = await api("DELETE", `/reservations/${from.id}?following=${withLater}`);
        if (!result.ok) return result.error.message;
        toast(count === 1 ? "The reservation is canceled." : `${count} reservations are canceled.`);
        router.refresh();
        return undefined;
      }}
    >
      {following.length > 0 && (
        <>
          <Select label="Which" value={at} onChange={(event) => setAt(Number(event.currentTarget.value))}>
            {all.map(({ id, startsAt }, index) => (
              <option key={id} value={index}>
                {formatExact(startsAt, zone)}
              </option>
            ))}
          </Select>
          {later > 0 && (
            <Select
              label="And later ones"
              value={String(withLater)}
              onChange={(event) => setWithLater(event.currentTarget.value === "true")}
            >
              <option value="false">Only this one</option>
              <option value="true">This and {later === 1 ? "the later one" : `all ${later} later ones`}</option>
            </Select>
          )}
        </>
      )}
    </Confirm>
  );
}
