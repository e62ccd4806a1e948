"use client";

import { type ComponentProps, lazy } from "react";
import { DialogButton } from "#components/ui/dialog-button.tsx";

const QuotaForm = lazy(() => import("./quota-form.tsx"));

/** Opens the form of a quota; `short` where the team and the type stand beside the button. */
export function EditQuota({
  short,
  ...props
}: Omit<ComponentProps<typeof QuotaForm>, "onClose"> & { short?: boolean }) {
  const label = props.quota ? `Edit ${props.quota.gpuType} quota` : "Add GPU type";
  return (
    <DialogButton
      size="sm"
      {...(short && { "aria-label": `${label} of ${props.teamName}` })}
      dialog={(close) => <QuotaForm {...props} onClose={close} />}
    >
      {short && props.quota ? (
        "Edit"
      ) : short ? (
        <span>
          Add<span className="max-sm:hidden"> GPU type</span>
        </span>
      ) : (
        label
      )}
    </DialogButton>
  );
}
