import type { Metadata } from "next";
import { formatAmount } from "#components/format.ts";
import { LeaseTable } from "#components/lease/lease-table.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { list } from "#server/services/lease/list.ts";
import { load, pageContext } from "../../../../page-context.ts";
import { readWorkspace, WorkspaceFrame } from "../workspace-frame.tsx";

type Props = { params: Promise<{ id: string }> };

export async function generateMetadata({ params }: Props): Promise<Metadata> {
  return { title: `GPU history of ${(await readWorkspace((await params).id)).name}` };
}

/** What this workspace has borrowed, and how each lease ended. */
export default async function WorkspaceGpuPage({ params }: Props) {
  const { id } = await params;
  const ctx = await pageContext();
  const workspace = await readWorkspace(id);
  const { leases } = await load(() => list(ctx, { which: "all", workspaceId: id }));
  return (
    <WorkspaceFrame workspace={workspace} tab="gpu">
      {leases.length === 0 ? (
        <EmptyState title="No GPU borrowed yet">
          In a notebook of this workspace, <code>%gpu attach {formatAmount(workspace.defaultMilli)}</code> borrows one.
        </EmptyState>
      ) : (
        <LeaseTable caption="Leases of this workspace" leases={leases} show={["notebook", "ended"]} />
      )}
    </WorkspaceFrame>
  );
}
