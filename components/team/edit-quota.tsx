"use client";

import { type ComponentProps, lazy } from "react";
import { DialogButton } from "#components/ui/dialog-button.tsx";

const QuotaForm = lazy(() => import("./quota-form.tsx"));

/** Opens the form of a quota. */
export function EditQuota(props: Omit<ComponentProps<typeof QuotaForm>, "onClose">) {
  return (
    <DialogButton size="sm" dialog={(close) => <QuotaForm {...props} onClose={close} />}>
      {props.quota ? `Edit ${props.quota.gpuType} quota` : "Add GPU type"}
    </DialogButton>
  );
}
