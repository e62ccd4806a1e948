"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useState } from "react";
import { api } from "#components/api.ts";
import { formatAmount } from "#components/format.ts";
import { Button } from "#components/ui/button.tsx";
import { Field, FormError } from "#components/ui/field.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { useSubmit } from "#components/use-submit.ts";
import type { GpuPolicy, WorkspaceView } from "#server/contracts/workspace.ts";
import { readAmount } from "./amount-input.ts";
import { GpuPolicySelect } from "./gpu-policy-select.tsx";

/** How the workspace comes to a GPU, and with how much. */
export function GpuPolicyForm({ workspace }: { workspace: WorkspaceView }) {
  const router = useRouter();
  const toast = useToast();
  const { pending, error, fields, run } = useSubmit<WorkspaceView>(["gpuPolicy", "defaultMilli"]);
  const [policy, setPolicy] = useState<GpuPolicy>(workspace.gpuPolicy);
  const [amount, setAmount] = useState(formatAmount(workspace.defaultMilli));
  const [touched, setTouched] = useState(false);
  const read = readAmount(amount);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    setTouched(true);
    if (!("milli" in read)) return;
    const body = { gpuPolicy: policy, defaultMilli: read.milli };
    const done = await run(() => api("PUT", `/workspaces/${workspace.id}/gpu-policy`, body));
    if (!done) return;
    toast("The GPU policy was changed. It holds from the next request on.");
    router.refresh();
  };
  return (
    <form className="flex flex-wrap items-start gap-3" onSubmit={(event) => void submit(event)}>
      <GpuPolicySelect value={policy} onChange={setPolicy} error={fields.gpuPolicy} className="w-72" />
      <Field
        label="Default amount"
        inputMode="decimal"
        value={amount}
        onChange={(event) => setAmount(event.target.value)}
        onBlur={() => setTouched(true)}
        suffix="of a GPU"
        error={fields.defaultMilli ?? (touched && "sentence" in read ? read.sentence : undefined)}
      />
      <Button type="submit" pending={pending} pendingLabel="Saving" className="mt-6">
        Save
      </Button>
      <FormError>{error}</FormError>
    </form>
  );
}
