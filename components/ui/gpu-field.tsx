import type { ComponentProps } from "react";
import { Field } from "./field.tsx";

/** A field for an amount of GPUs, or of what is counted like them, to a thousandth (`formMilli` reads it). */
export function GpuField(props: Omit<ComponentProps<typeof Field>, "type" | "step" | "inputMode">) {
  return <Field required min={0} suffix="GPUs" {...props} type="number" step={0.001} inputMode="decimal" />;
}
