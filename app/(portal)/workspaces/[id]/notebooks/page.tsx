import type { Metadata } from "next";
import { FollowedKernels } from "#components/workspace-kernel/followed-kernels.tsx";
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
  const kernels = await load(() => list(ctx, { id }));
  return (
    <WorkspaceFrame workspace={workspace} tab="notebooks">
      <FollowedKernels workspaceId={id} read={kernels} mayChange={workspace.can.work} />
    </WorkspaceFrame>
  );
}
