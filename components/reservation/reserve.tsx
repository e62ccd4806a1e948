"use client";

import { type ComponentProps, lazy } from "react";
import { DialogButton } from "#components/ui/dialog-button.tsx";

const ReservationForm = lazy(() => import("./reservation-form.tsx"));

/** Opens the form that reserves a part of the pool. */
export function Reserve(props: Omit<ComponentProps<typeof ReservationForm>, "onClose">) {
  return (
    <DialogButton size="sm" dialog={(close) => <ReservationForm {...props} onClose={close} />}>
      Reserve
    </DialogButton>
  );
}
