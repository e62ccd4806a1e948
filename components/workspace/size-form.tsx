"use client";

import { useRouter } from "next/navigation";
import type { FormEvent } from "react";
import { api } from "#components/api.ts";
import { Button } from "#components/ui/button.tsx";
import { FormError } from "#components/ui/field.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { useEdit } from "#components/use-edit.ts";
import { sizeInWords } from "#server/contracts/size-words.ts";
import type { WorkspaceView } from "#server/contracts/workspace.ts";
import type { SizeChoices } from "./size-choice.ts";
import { SizeFields, useSize } from "./size-fields.tsx";

/** What the workspace has of processor and memory from its next start on. */
export function SizeForm({ workspace, choices }: { workspace: WorkspaceView; choices: SizeChoices }) {
  const router = useRouter();
  const toast = useToast();
  const { versions } = workspace;
  const { pending, error, fields, run, version } = useEdit<WorkspaceView>(
    ["size"],
    versions.size,
    (saved) => saved.versions.size,
  );
  const now = workspace.size;
  const state = useSize(choices, now === null ? undefined : (now.name ?? sizeOnly(now)));
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (!state.check()) return;
    const done = await run(() => api("PUT", `/workspaces/${workspace.id}/size`, { size: state.size, version }));
    if (!done) return;
    toast("The size is saved. The next start has it.");
    router.refresh();
  };
  return (
    <form className="flex flex-col items-start gap-3" onSubmit={(event) => void submit(event)}>
      {now !== null && now.name === null && (
        <p className="text-ink-2">It has {sizeInWords(now)}, which is no size that is offered.</p>
      )}
      {now?.runsWith && (
        <p role="status" className="text-warn">
          It runs with {sizeInWords(now.runsWith)}. A restart gives it {sizeInWords(now)}.
        </p>
      )}
      <div className="w-full">
        <SizeFields state={state} error={fields.size} />
      </div>
      <FormError>{error}</FormError>
      <Button
        type="submit"
        pending={pending}
        pendingLabel="Saving"
        disabled={choices.sizes.length === 0 && !choices.custom}
      >
        Save
      </Button>
    </form>
  );
}

const sizeOnly = ({ cpuMilli, memoryBytes }: NonNullable<WorkspaceView["size"]>) => ({ cpuMilli, memoryBytes });
