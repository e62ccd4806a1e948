"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useState } from "react";
import { api } from "#components/api.ts";
import { Button } from "#components/ui/button.tsx";
import { FormError } from "#components/ui/field.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { useEdit } from "#components/use-edit.ts";
import type { GpuPolicy, WorkspaceView } from "#server/contracts/workspace.ts";
import { DefaultAmountField, useDefaultAmount } from "./default-amount.tsx";
import { GpuPolicySelect } from "./gpu-policy-select.tsx";

/** How the workspace comes to a GPU, and with how much. */
export function GpuPolicyForm({ workspace }: { workspace: WorkspaceView }) {
  const router = useRouter();
  const toast = useToast();
  const { versions } = workspace;
  const { pending, error, fields, run, version } = useEdit<WorkspaceView>(
    ["gpuPolicy", "defaultAmount"],
    versions.gpuPolicy,
    (saved) => saved.versions.gpuPolicy,
  );
  const [policy, setPolicy] = useState<GpuPolicy>(workspace.gpuPolicy);
  const amount = useDefaultAmount(workspace.defaultAmount);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    amount.check();
    if (amount.parsed === undefined) return;
    const body = { gpuPolicy: policy, defaultAmount: amount.text, version };
    const done = await run(() => api("PUT", `/workspaces/${workspace.id}/gpu-policy`, body));
    if (!done) return;
    toast("The GPU policy was changed. It holds from the next request on.");
    router.refresh();
  };
  return (
    <form className="flex flex-wrap items-start gap-3" onSubmit={(event) => void submit(event)}>
      <GpuPolicySelect value={policy} onChange={setPolicy} error={fields.gpuPolicy} className="w-72" />
      <DefaultAmountField amount={amount} error={fields.defaultAmount} />
      <Button type="submit" pending={pending} pendingLabel="Saving" className="mt-6">
        Save
      </Button>
      <FormError>{error}</FormError>
    </form>
  );
}
