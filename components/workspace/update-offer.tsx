"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { Button } from "#components/ui/button.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { Link } from "#components/ui/link.tsx";
import type { WorkspaceView } from "#server/contracts/workspace.ts";
import { leaseLoss } from "./lease-loss.ts";

/** Says that there is a newer version of a workspace's environment, and takes it. */
export function UpdateOffer({ workspace }: { workspace: WorkspaceView }) {
  const router = useRouter();
  const [asking, setAsking] = useState(false);
  const { id, name, update, image, desired } = workspace;
  if (update === null) return null;
  const runs = desired === "running";
  const act = async () => {
    const result = await api("POST", `/workspaces/${id}/update`, { versionId: update.id });
    router.refresh();
    return result.ok ? undefined : result.error.message;
  };
  return (
    <div className="mb-5 flex flex-wrap items-center justify-between gap-x-6 gap-y-2 rounded-md bg-accent-soft px-3 py-2">
      <p>
        There is a newer version of {image.title},{" "}
        <Link href={`/environments/${update.id}`} className="underline underline-offset-4">
          {update.version}
        </Link>
        . This workspace has {image.version}.
      </p>
      {workspace.can.change && (
        <Button size="sm" onClick={() => setAsking(true)}>
          {runs ? "Restart with the update" : "Take the update"}
        </Button>
      )}
      <Confirm
        open={asking}
        onOpenChange={setAsking}
        danger={runs}
        title={`Update ${name}?`}
        loses={
          runs
            ? `It restarts with version ${update.version}. Its notebooks end, and what they hold in memory is lost. ${leaseLoss(workspace)}Files and installed packages stay.`
            : `Its next start has version ${update.version}. Files and installed packages stay.`
        }
        confirmLabel={runs ? "Restart with the update" : "Take the update"}
        pendingLabel="Updating"
        act={act}
      />
    </div>
  );
}
