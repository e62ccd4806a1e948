"use client";

import { type ComponentProps, lazy } from "react";
import { DialogButton } from "#components/ui/dialog-button.tsx";

const PolicyForm = lazy(() => import("./policy-form.tsx"));

/** Opens the form of a team's policy. */
export function EditPolicy(props: Omit<ComponentProps<typeof PolicyForm>, "onClose">) {
  return (
    <DialogButton size="sm" dialog={(close) => <PolicyForm {...props} onClose={close} />}>
      Edit policy
    </DialogButton>
  );
}
