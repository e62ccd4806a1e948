"use client";

import type { ComponentProps } from "react";
import { Field } from "#components/ui/field.tsx";
import { useTimeZone } from "./time-zone-context.tsx";

/** A day and a time of it, typed in the person's zone, which the label names; `instantIn` reads it. */
export function TimeField({ label, ...rest }: Omit<ComponentProps<typeof Field>, "type">) {
  return <Field {...rest} label={`${label} (${useTimeZone()})`} type="datetime-local" />;
}
