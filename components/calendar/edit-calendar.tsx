"use client";

import { type ComponentProps, lazy } from "react";
import { DialogButton } from "#components/ui/dialog-button.tsx";

const QuotaCalendarForm = lazy(() => import("./quota-calendar-form.tsx"));
const TypeCalendarForm = lazy(() => import("./type-calendar-form.tsx"));

/** Opens the form of how a team's quota differs by weekday and hour. `short`: what is beside it says of whom. */
export function EditQuotaCalendar({
  title,
  short,
  ...props
}: Omit<ComponentProps<typeof QuotaCalendarForm>, "onClose"> & { title: string; short?: boolean }) {
  const whole = `Edit calendar of ${title}`;
  return (
    <DialogButton size="sm" aria-label={whole} dialog={(close) => <QuotaCalendarForm {...props} onClose={close} />}>
      {short ? "Edit calendar" : whole}
    </DialogButton>
  );
}

/** Opens the form of which kind of work a GPU type takes when. */
export function EditTypeCalendar(props: Omit<ComponentProps<typeof TypeCalendarForm>, "onClose">) {
  return (
    <DialogButton size="sm" dialog={(close) => <TypeCalendarForm {...props} onClose={close} />}>
      Edit calendar of {props.calendar.gpuType}
    </DialogButton>
  );
}
