"use client";

import { type ComponentProps, lazy } from "react";
import { DialogButton } from "#components/ui/dialog-button.tsx";

const QuotaRequestForm = lazy(() => import("./quota-request-form.tsx"));

/** Opens the form that asks for more than the quota; a refusal's link, which says how much, has it open. */
export function RequestMore(props: Omit<ComponentProps<typeof QuotaRequestForm>, "onClose">) {
  return (
    <DialogButton
      size="sm"
      initiallyOpen={props.initialGpus !== undefined}
      dialog={(close) => <QuotaRequestForm {...props} onClose={close} />}
    >
      Request more
    </DialogButton>
  );
}
