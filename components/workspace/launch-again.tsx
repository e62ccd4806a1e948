"use client";

import { useRouter } from "next/navigation";
import { api } from "#components/api.ts";
import { Button } from "#components/ui/button.tsx";
import { FormError } from "#components/ui/field.tsx";
import { Card } from "#components/ui/page.tsx";
import { useSubmit } from "#components/use-submit.ts";
import { sizeInWords } from "#server/contracts/size-words.ts";
import type { CreateWorkspaceInput, WorkspaceView } from "#server/contracts/workspace.ts";
import type { ChosenSize } from "#server/contracts/workspace-size.ts";

/** A launch as it was asked for last, under a name that is free. */
export type LaunchAgain = {
  asked: Required<Omit<CreateWorkspaceInput, "size" | "versionId">> & {
    size: ChosenSize | undefined;
    versionId: string | undefined;
  };
  /** As people know it. */
  like: { title: string; version: string | undefined; team: string; datasets: string[] };
};

function useLaunchAgain({ asked }: LaunchAgain) {
  const router = useRouter();
  const { pending, error, run } = useSubmit<WorkspaceView>([]);
  const launch = async () => {
    const made = await run(() => api("POST", "/workspaces", asked));
    if (made) router.push(`/workspaces/${made.id}`);
  };
  return { pending, error, launch };
}

const inWords = ({ asked, like }: LaunchAgain): string =>
  [
    `${like.title}${like.version === undefined ? "" : ` ${like.version.slice(0, 12)}`}, team ${like.team}`,
    asked.size === undefined ? [] : typeof asked.size === "string" ? asked.size : sizeInWords(asked.size),
    asked.gpuPolicy === "never" ? "no GPU" : `${asked.defaultAmount} ${asked.gpuType}`,
    like.datasets.length === 0 ? [] : `datasets ${like.datasets.join(", ")}`,
  ]
    .flat()
    .join(", ");

/** One press launches the last one once more, and goes there. */
export function LaunchAgainButton({ again }: { again: LaunchAgain }) {
  const { pending, error, launch } = useLaunchAgain(again);
  return (
    <>
      <FormError>{error}</FormError>
      <Button title={inWords(again)} pending={pending} pendingLabel="Launching" onClick={() => void launch()}>
        Launch the last one again
      </Button>
    </>
  );
}

/** The same with what that would be, above the form of a launch. */
export function LaunchAgainCard({ again }: { again: LaunchAgain }) {
  const { pending, error, launch } = useLaunchAgain(again);
  return (
    <Card className="mb-6 flex max-w-3xl flex-wrap items-center justify-between gap-x-6 gap-y-3 p-4">
      <div className="min-w-0">
        <p className="text-sm text-ink-2">The last one again, as {again.asked.name}</p>
        <p className="break-words">{inWords(again)}</p>
        <FormError>{error}</FormError>
      </div>
      <Button pending={pending} pendingLabel="Launching" onClick={() => void launch()}>
        Launch the last one again
      </Button>
    </Card>
  );
}
