import { formText } from "#components/form-text.ts";
import { Check, Field } from "#components/ui/field.tsx";

const GIB = 2 ** 30;

/** The size of what the server cannot measure. */
export function SizeField({ bytes, error }: { bytes?: number | null; error: string | undefined }) {
  return (
    <Field
      label="Size"
      name="size"
      type="number"
      min={0}
      step="any"
      defaultValue={bytes == null ? "" : String(bytes / GIB)}
      suffix="GiB"
      hint="Your estimate: Sluice cannot measure it"
      error={error}
    />
  );
}

/** What was typed there, in bytes; null when nothing was. */
export function readBytes(form: FormData): number | null {
  const text = formText(form, "size").trim();
  return text === "" ? null : Math.round(Number(text) * GIB);
}

/** Whether it is read ahead. */
export function PrefetchCheck({ defaultChecked }: { defaultChecked: boolean }) {
  return (
    <Check
      label="Read into memory when a workspace starts"
      name="prefetch"
      defaultChecked={defaultChecked}
      hint="In the background, up to half of the free memory."
    />
  );
}
