import { cache, type ReactNode } from "react";
import { LiveRefresh } from "#components/live/live.tsx";
import { Link } from "#components/ui/link.tsx";
import { PageHeader } from "#components/ui/page.tsx";
import { TabLinks } from "#components/ui/tabs.tsx";
import { UpdateOffer } from "#components/workspace/update-offer.tsx";
import { WorkspaceActions } from "#components/workspace/workspace-actions.tsx";
import { WorkspaceState } from "#components/workspace/workspace-state.tsx";
import { WorkspaceTimers } from "#components/workspace/workspace-timers.tsx";
import type { WorkspaceView } from "#server/contracts/workspace.ts";
import { get } from "#server/services/workspace/get.ts";
import { load, pageContext } from "../../../page-context.ts";

/** The workspace of this page, read once a request. */
export const readWorkspace = cache(async (id: string): Promise<WorkspaceView> => {
  const ctx = await pageContext();
  return await load(() => get(ctx, { id }));
});

/** What stands above every tab of a workspace: its name, its state, the timers, and the way in. */
export function WorkspaceFrame({
  workspace,
  tab,
  children,
}: {
  workspace: WorkspaceView;
  tab: "overview" | "notebooks" | "log" | "gpu" | "people" | "settings";
  children: ReactNode;
}) {
  const base = `/workspaces/${workspace.id}`;
  return (
    <>
      <LiveRefresh topics={["mine", "usage", "dataset"]} />
      {workspace.role === null && <LiveRefresh topics={["workspace", "lease"]} seconds={1} />}
      <PageHeader
        above={
          <Link href="/workspaces" className="underline-offset-4 hover:underline">
            Workspaces
          </Link>
        }
        title={workspace.name}
        detail={
          <span className="flex flex-wrap items-center gap-x-4 gap-y-1">
            <WorkspaceState workspace={workspace} />
            {(workspace.role === "viewer" || workspace.role === "editor") && (
              <span>
                you are {workspace.role === "viewer" ? "a viewer" : "an editor"}, the owner is {workspace.owner.name}
              </span>
            )}
            <WorkspaceTimers workspace={workspace} />
          </span>
        }
        actions={<WorkspaceActions workspace={workspace} size="md" />}
      />
      <TabLinks
        label="Parts of the workspace"
        current={tab}
        tabs={[
          { id: "overview", label: "Overview", href: base },
          { id: "notebooks", label: "Notebooks", href: `${base}/notebooks` },
          { id: "log", label: "Log", href: `${base}/log` },
          { id: "gpu", label: "GPU history", href: `${base}/gpu` },
          { id: "people", label: "People", href: `${base}/people` },
          { id: "settings", label: "Settings", href: `${base}/settings` },
        ]}
      />
      <UpdateOffer workspace={workspace} />
      {children}
    </>
  );
}
