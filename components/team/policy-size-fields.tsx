import { formText } from "#components/form-text.ts";
import { CUSTOM_SIZES } from "#components/size/custom-sizes.ts";
import { Field, Select } from "#components/ui/field.tsx";
import { readCores, readGib } from "#components/workspace/size-words.ts";
import type { TeamPolicyView } from "#server/contracts/sharing.ts";

/** Who of a team may choose sizes of workspaces freely, and how large; what is empty follows the installation. */
export function PolicySizeFields({ policy, errors }: { policy: TeamPolicyView; errors: Record<string, string> }) {
  const { installation: everywhere } = policy;
  return (
    <>
      <Select
        label="Custom sizes"
        name="customSizes"
        defaultValue={policy.customSizes ?? ""}
        hint="Who may choose cores and memory of a workspace freely"
        error={errors.customSizes}
      >
        <option value="">{`As everywhere (${CUSTOM_SIZES[everywhere.customSizes].toLowerCase()})`}</option>
        {Object.entries(CUSTOM_SIZES).map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </Select>
      <div className="grid grid-cols-2 gap-4">
        <Field
          label="Cores at most"
          name="maxCpuMilli"
          inputMode="decimal"
          autoComplete="off"
          defaultValue={policy.maxCpuMilli === null ? "" : policy.maxCpuMilli / 1000}
          placeholder={String(everywhere.maxCpuMilli / 1000)}
          error={errors.maxCpuMilli}
        />
        <Field
          label="Memory at most"
          name="maxMemoryBytes"
          suffix="GiB"
          inputMode="decimal"
          autoComplete="off"
          defaultValue={policy.maxMemoryBytes === null ? "" : policy.maxMemoryBytes / 2 ** 30}
          placeholder={String(everywhere.maxMemoryBytes / 2 ** 30)}
          error={errors.maxMemoryBytes}
        />
      </div>
    </>
  );
}

/** What stands in these fields as the API takes it, and the sentence beside each that is no number. */
export function readSizeBounds(form: FormData): { input: Record<string, unknown>; wrong: Record<string, string> } {
  const wrong: Record<string, string> = {};
  const bound = (name: string, read: (text: string) => number | undefined) => {
    const text = formText(form, name).trim();
    const value = text === "" ? null : read(text);
    if (value === undefined) wrong[name] = "A number like 8, or nothing.";
    return value ?? null;
  };
  const input = {
    customSizes: formText(form, "customSizes") || null,
    maxCpuMilli: bound("maxCpuMilli", readCores),
    maxMemoryBytes: bound("maxMemoryBytes", readGib),
  };
  return { input, wrong };
}
