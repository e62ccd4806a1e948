"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useState } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { Button } from "#components/ui/button.tsx";
import { Field, FormError, Select } from "#components/ui/field.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { useEdit } from "#components/use-edit.ts";
import { readCores, readGib } from "#components/workspace/size-words.ts";
import type { SizeList } from "#server/contracts/workspace-size.ts";
import { CUSTOM_SIZES } from "./custom-sizes.ts";

/** Who may choose cores and memory freely, and how much, where a team's policy says nothing. */
export function SizePolicyForm({ policy }: { policy: SizeList["policy"] }) {
  const router = useRouter();
  const toast = useToast();
  const known = ["customSizes", "maxCpuMilli", "maxMemoryBytes"];
  const { pending, error, fields, run, version } = useEdit<SizeList>(
    known,
    policy.version,
    (saved) => saved.policy.version,
  );
  const [unread, setUnread] = useState<{ cpu?: string; memory?: string }>({});
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const [maxCpuMilli, maxMemoryBytes] = [readCores(formText(form, "cores")), readGib(formText(form, "memory"))];
    setUnread({
      ...(maxCpuMilli === undefined && { cpu: "A number like 8." }),
      ...(maxMemoryBytes === undefined && { memory: "A number like 32." }),
    });
    if (maxCpuMilli === undefined || maxMemoryBytes === undefined) return;
    const body = { customSizes: formText(form, "customSizes"), maxCpuMilli, maxMemoryBytes, version };
    if (!(await run(() => api("PUT", "/workspace-sizes/policy", body)))) return;
    toast("Who may choose sizes freely is saved.");
    router.refresh();
  };
  return (
    <form className="flex flex-wrap items-start gap-4" onSubmit={(event) => void submit(event)}>
      <Select
        label="Who may"
        name="customSizes"
        defaultValue={policy.customSizes}
        error={fields.customSizes}
        className="w-56"
      >
        {Object.entries(CUSTOM_SIZES).map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </Select>
      <Field
        label="Cores at most"
        name="cores"
        inputMode="decimal"
        autoComplete="off"
        defaultValue={policy.maxCpuMilli / 1000}
        error={unread.cpu ?? fields.maxCpuMilli}
        className="w-32"
      />
      <Field
        label="Memory at most"
        name="memory"
        suffix="GiB"
        inputMode="decimal"
        autoComplete="off"
        defaultValue={policy.maxMemoryBytes / 2 ** 30}
        error={unread.memory ?? fields.maxMemoryBytes}
        className="w-36"
      />
      <Button type="submit" pending={pending} pendingLabel="Saving" className="mt-6">
        Save
      </Button>
      <FormError>{error}</FormError>
    </form>
  );
}
