"use client";

import { type ComponentProps, lazy } from "react";
import { DialogButton } from "#components/ui/dialog-button.tsx";

const PriceForm = lazy(() => import("./price-form.tsx"));

/** Opens the form of a GPU type's price. */
export function EditPrice(props: Omit<ComponentProps<typeof PriceForm>, "onClose">) {
  const { gpuType, price } = props;
  const label = price ? "Change price" : "Set price";
  return (
    <DialogButton
      size="sm"
      aria-label={`${label} of ${gpuType}`}
      dialog={(close) => <PriceForm {...props} onClose={close} />}
    >
      {label}
    </DialogButton>
  );
}
