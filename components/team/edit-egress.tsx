"use client";

import { type ComponentProps, lazy } from "react";
import { DialogButton } from "#components/ui/dialog-button.tsx";

const EgressForm = lazy(() => import("./egress-form.tsx"));

/** Opens the form of a team's outgoing network policy. */
export function EditEgress(form: Omit<ComponentProps<typeof EgressForm>, "onClose">) {
  return (
    <DialogButton size="sm" dialog={(close) => <EgressForm {...form} onClose={close} />}>
      Edit outgoing network
    </DialogButton>
  );
}
