"use client";

import { ExternalLink, MoreHorizontal } from "lucide-react";
import { useRouter } from "next/navigation";
import { lazy, Suspense, useState } from "react";
import { api } from "#components/api.ts";
import { Button, IconButton } from "#components/ui/button.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { Menu, MenuItem } from "#components/ui/menu.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { WorkspaceView } from "#server/contracts/workspace.ts";
import { leaseLoss } from "./lease-loss.ts";
import { openWorkspace } from "./open-workspace.ts";
import { RemoveWorkspaceDialog } from "./remove-workspace.tsx";

const RenameWorkspaceDialog = lazy(() => import("./rename-workspace.tsx"));
const DuplicateWorkspaceDialog = lazy(() => import("./duplicate-workspace.tsx"));

/** What ends the notebooks of a workspace, in words. */
const CHANGES = {
  stop: { verb: "Stop", pending: "Stopping", keeps: "stay for the next start." },
  restart: { verb: "Restart", pending: "Restarting", keeps: "stay; changed variables take effect." },
};

/** Open, start, stop, restart, rename, duplicate and remove, as far as the person may and the state allows. */
export function WorkspaceActions({ workspace, size = "sm" }: { workspace: WorkspaceView; size?: "sm" | "md" }) {
  const router = useRouter();
  const toast = useToast();
  const [pending, setPending] = useState<"open" | "start">();
  const [asking, setAsking] = useState<"stop" | "restart" | "rename" | "duplicate" | "remove">();
  const { id, name, can, desired, observed } = workspace;

  const open = async () => {
    setPending("open");
    const refused = await openWorkspace(id);
    setPending(undefined);
    if (refused) toast(refused, "bad");
  };
  const start = async () => {
    setPending("start");
    const result = await api("POST", `/workspaces/${id}/start`);
    setPending(undefined);
    if (!result.ok) toast(result.error.message, "bad");
    router.refresh();
  };
  const change = async (verb: keyof typeof CHANGES) => {
    const result = await api("POST", `/workspaces/${id}/${verb}`);
    router.refresh();
    return result.ok ? undefined : result.error.message;
  };

  const close = () => setAsking(undefined);

  return (
    <div className="flex items-center justify-end gap-1.5">
      {can.open && (
        <Button
          size={size}
          variant="primary"
          pending={pending === "open"}
          pendingLabel="Opening"
          onClick={() => void open()}
          aria-label={`Open ${name} in a new tab`}
        >
          Open <ExternalLink aria-hidden="true" className="size-3.5 max-sm:hidden" />
        </Button>
      )}
      {can.start && (
        <Button
          size={size}
          variant={size === "md" ? "primary" : "secondary"}
          pending={pending === "start"}
          pendingLabel="Starting"
          onClick={() => void start()}
          aria-label={observed === "failed" ? `Start again: ${name}` : `Start ${name}`}
        >
          {observed === "failed" ? "Start again" : "Start"}
        </Button>
      )}
      {(can.stop || can.remove) && desired !== "removed" && (
        <Menu
          trigger={
            <IconButton label={`More for ${name}`} className={size === "sm" ? "size-7" : ""}>
              <MoreHorizontal aria-hidden="true" className="size-4" />
            </IconButton>
          }
        >
          {can.stop && <MenuItem onSelect={() => setAsking("stop")}>Stop</MenuItem>}
          {can.restart && <MenuItem onSelect={() => setAsking("restart")}>Restart</MenuItem>}
          {can.change && <MenuItem onSelect={() => setAsking("rename")}>Rename</MenuItem>}
          {can.duplicate && <MenuItem onSelect={() => setAsking("duplicate")}>Duplicate</MenuItem>}
          {can.remove && (
            <MenuItem danger onSelect={() => setAsking("remove")}>
              Remove
            </MenuItem>
          )}
        </Menu>
      )}
      {/* Made when they are asked for: a list of workspaces would have four of them in each row. */}
      {(asking === "stop" || asking === "restart") && (
        <Confirm
          open
          onOpenChange={close}
          title={`${CHANGES[asking].verb} ${name}?`}
          loses={
            <>
              Its notebooks end, and what they hold in memory is lost. {leaseLoss(workspace)}Files and installed
              packages {CHANGES[asking].keeps}
            </>
          }
          confirmLabel={`${CHANGES[asking].verb} workspace`}
          pendingLabel={CHANGES[asking].pending}
          act={() => change(asking)}
        />
      )}
      {asking === "rename" && (
        <Suspense>
          <RenameWorkspaceDialog workspace={workspace} onClose={close} />
        </Suspense>
      )}
      {asking === "duplicate" && (
        <Suspense>
          <DuplicateWorkspaceDialog workspace={workspace} onClose={close} />
        </Suspense>
      )}
      {asking === "remove" && <RemoveWorkspaceDialog workspace={workspace} open onOpenChange={close} />}
    </div>
  );
}
