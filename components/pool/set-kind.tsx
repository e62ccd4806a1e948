"use client";

import { useRouter } from "next/navigation";
import type { FormEvent } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { Dialog } from "#components/ui/dialog.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { useEdit } from "#components/use-edit.ts";
import { type GpuKind, gpuKind, type PoolDevice } from "#server/contracts/gpu-server.ts";
import { KINDS } from "./kinds.ts";

/** Says what the hardware behind a device is. Render it only while it is asked. */
export default function SetKind({
  device: { id, name, kind },
  onClose,
}: {
  device: Pick<PoolDevice, "id" | "name" | "kind">;
  onClose: () => void;
}) {
  const router = useRouter();
  const toast = useToast();
  const { pending, error, run, version: was } = useEdit<unknown, GpuKind>([], kind);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const chosen = gpuKind.parse(formText(new FormData(event.currentTarget), "kind"));
    if (!(await run(() => api("PUT", `/gpus/${id}/kind`, { kind: chosen, was })))) return;
    onClose();
    toast(`${name} is listed as ${KINDS[chosen].word}.`);
    router.refresh();
  };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={`Kind of ${name}`}
      description="What the pool says of it. gpud knows MIG and vGPU by the driver's name; leases and what runs stay as they are."
    >
      <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
        <fieldset className="flex flex-col gap-2">
          <legend className="sr-only">Kind</legend>
          {gpuKind.options.map((each) => (
            <label key={each} className="flex items-start gap-2">
              <input
                type="radio"
                name="kind"
                value={each}
                defaultChecked={each === kind}
                className="mt-1 size-4 shrink-0 accent-accent"
              />
              <span>
                {KINDS[each].word}
                <span className="block text-sm text-ink-2">{KINDS[each].means}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <FormFooter error={error} pending={pending} onCancel={onClose} save="Save kind" />
      </form>
    </Dialog>
  );
}
