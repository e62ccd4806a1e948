"use client";

import { useRouter } from "next/navigation";
import type { FormEvent } from "react";
import { api } from "#components/api.ts";
import { Button } from "#components/ui/button.tsx";
import { FormError, Select } from "#components/ui/field.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { useEdit } from "#components/use-edit.ts";
import type { WorkspaceView } from "#server/contracts/workspace.ts";

const CHOICES = [
  [1800, "30 min"],
  [3600, "1 h"],
  [2 * 3600, "2 h"],
  [4 * 3600, "4 h"],
  [8 * 3600, "8 h"],
  [24 * 3600, "24 h"],
] as const;

/** After how long without activity the workspace stops. */
export function IdleLimitForm({ workspace }: { workspace: WorkspaceView }) {
  const router = useRouter();
  const toast = useToast();
  const { versions } = workspace;
  const { pending, error, fields, run, version } = useEdit<WorkspaceView>(
    ["idleSeconds"],
    versions.idleLimit,
    (saved) => saved.versions.idleLimit,
  );
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const chosen = new FormData(event.currentTarget).get("idleSeconds");
    const idleSeconds = chosen === "team" ? null : Number(chosen);
    const done = await run(() => api("PUT", `/workspaces/${workspace.id}/idle-limit`, { idleSeconds, version }));
    if (!done) return;
    toast("The idle limit was changed.");
    router.refresh();
  };
  const { ownIdleSeconds: own } = workspace;
  const known = CHOICES.some(([seconds]) => seconds === own);
  return (
    <form className="flex flex-wrap items-end gap-3" onSubmit={(event) => void submit(event)}>
      <Select
        label="Stop after"
        name="idleSeconds"
        defaultValue={String(own ?? "team")}
        error={fields.idleSeconds}
        className="w-56"
      >
        <option value="team">what my team says</option>
        {own !== null && !known && <option value={own}>{Math.round(own / 60)} min</option>}
        {CHOICES.map(([seconds, label]) => (
          <option key={seconds} value={seconds}>
            {label}
          </option>
        ))}
      </Select>
      <Button type="submit" pending={pending} pendingLabel="Saving">
        Save
      </Button>
      <FormError>{error}</FormError>
    </form>
  );
}
