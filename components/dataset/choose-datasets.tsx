"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useState } from "react";
import { api } from "#components/api.ts";
import { Button } from "#components/ui/button.tsx";
import { FormError } from "#components/ui/field.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { useEdit } from "#components/use-edit.ts";
import type { WorkspaceDatasetList } from "#server/contracts/dataset.ts";
import type { WorkspaceView } from "#server/contracts/workspace.ts";
import { DatasetChecks } from "./dataset-checks.tsx";
import { choicesFor, type DatasetChoice } from "./dataset-choice.ts";

/** Which datasets a workspace mounts from its next start on. */
export function ChooseDatasets({
  workspace,
  choices,
  chosen: before,
  version: seen,
}: {
  workspace: WorkspaceView;
  choices: DatasetChoice[];
  chosen: string[];
  /** Of what is chosen. */
  version: number;
}) {
  const router = useRouter();
  const toast = useToast();
  const { pending, error, fields, run, version } = useEdit<WorkspaceDatasetList>(
    ["datasets"],
    seen,
    (saved) => saved.version,
  );
  const offered = choicesFor(choices, workspace.team.id);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(
    () => new Set(before.filter((id) => offered.some((each) => each.id === id))),
  );
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const datasets = [...chosen];
    const done = await run(() => api("PUT", `/workspaces/${workspace.id}/datasets`, { datasets, version }));
    if (!done) return;
    const running = workspace.desired === "running";
    toast(`The datasets were changed${running ? ": restart the workspace to have them" : ""}.`);
    router.refresh();
  };
  return (
    <form className="flex flex-col items-start gap-3" onSubmit={(event) => void submit(event)}>
      <DatasetChecks choices={offered} launcher={workspace.launcher} chosen={chosen} onChange={setChosen} />
      <FormError>{fields.datasets ?? error}</FormError>
      <Button type="submit" pending={pending} pendingLabel="Saving">
        Save datasets
      </Button>
    </form>
  );
}
