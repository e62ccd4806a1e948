"use client";

import { type ComponentProps, lazy } from "react";
import { DialogButton } from "#components/ui/dialog-button.tsx";

const PriceForm = lazy(() => import("./price-form.tsx"));

/** Opens the form of a GPU type's price. */
export function EditPrice(props: Omit<ComponentProps<typeof PriceForm>, "onClose">) {
  const { gpuType, price } = props;
  return (
    <DialogButton
      size="sm"
      aria-label={`${price ? "Change" : "Set"} the price of ${gpuType}`}
      dialog={(close) => <PriceForm {...props} onClose={close} />}
    >
      {price ? "Change price" : "Set price"}
    </DialogButton>
  );
}
