"use client";

import { type ComponentProps, lazy, type ReactNode } from "react";
import { DialogButton } from "#components/ui/dialog-button.tsx";

const PolicyForm = lazy(() => import("./policy-form.tsx"));

type Props = Omit<ComponentProps<typeof PolicyForm>, "onClose"> & {
  /** The name of the button where several stand below each other. */
  label?: string;
  children?: ReactNode;
};

/** Opens the form of a team's policy. */
export function EditPolicy({ label, children = "Edit policy", ...form }: Props) {
  return (
    <DialogButton size="sm" aria-label={label} dialog={(close) => <PolicyForm {...form} onClose={close} />}>
      {children}
    </DialogButton>
  );
}
