import type { Metadata } from "next";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { KernelTable } from "#components/workspace-kernel/kernel-table.tsx";
import { list } from "#server/services/workspace-kernel/list.ts";
import { load, pageContext } from "../../../../page-context.ts";
import { readWorkspace, WorkspaceFrame } from "../workspace-frame.tsx";

type Props = { params: Promise<{ id: string }> };

export async function generateMetadata({ params }: Props): Promise<Metadata> {
  return { title: `Notebooks of ${(await readWorkspace((await params).id)).name}` };
}

/** What runs in the workspace now, as its Jupyter server tells. */
export default async function WorkspaceNotebooksPage({ params }: Props) {
  const { id } = await params;
  const ctx = await pageContext();
  const workspace = await readWorkspace(id);
  const { state, kernels } = await load(() => list(ctx, { id }));
  return (
    <WorkspaceFrame workspace={workspace} tab="notebooks">
      {state === "not running" ? (
        <EmptyState title="The workspace does not run">Start it, then its running notebooks stand here.</EmptyState>
      ) : state === "no answer" ? (
        <EmptyState title="The workspace's Jupyter server does not answer">
          It may be busy or about to start. This page asks again with the next change; if it stays so, restart the
          workspace.
        </EmptyState>
      ) : kernels.length === 0 ? (
        <EmptyState title="No notebook runs">
          Open the workspace and start one; what it does and which GPU it holds stands here then.
        </EmptyState>
      ) : (
        <KernelTable workspaceId={id} kernels={kernels} mayChange={workspace.can.work} />
      )}
    </WorkspaceFrame>
  );
}
