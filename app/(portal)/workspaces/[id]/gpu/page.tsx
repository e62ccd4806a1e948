import type { Metadata } from "next";
import { LeaseTable } from "#components/lease/lease-table.tsx";
import { DownloadCsv } from "#components/ui/download-csv.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { Paging } from "#components/ui/paging.tsx";
import { leaseId } from "#server/contracts/common.ts";
import { list } from "#server/services/lease/list.ts";
import { loadFrom, pageContext } from "../../../../page-context.ts";
import { readWorkspace, WorkspaceFrame } from "../workspace-frame.tsx";

type Props = { params: Promise<{ id: string }>; searchParams: Promise<{ after?: string | string[] }> };
const PAGE = 100;

export async function generateMetadata({ params }: Props): Promise<Metadata> {
  return { title: `GPU history of ${(await readWorkspace((await params).id)).name}` };
}

/** What this workspace has borrowed, and how each lease ended. */
export default async function WorkspaceGpuPage({ params, searchParams }: Props) {
  const { id } = await params;
  const after = leaseId.safeParse((await searchParams).after).data;
  const ctx = await pageContext();
  const workspace = await readWorkspace(id);
  const question = { which: "all", workspaceId: id } as const;
  const { leases, total, next } = await loadFrom(after, (from) => list(ctx, { ...question, limit: PAGE, after: from }));
  return (
    <WorkspaceFrame workspace={workspace} tab="gpu">
      {total === 0 ? (
        <EmptyState title="No GPU borrowed yet">
          In a notebook of this workspace, <code>%gpu attach {workspace.defaultAmount}</code> borrows one.
        </EmptyState>
      ) : (
        <>
          <p className="mb-2 text-right">
            <DownloadCsv href={`/api/v1/leases?${new URLSearchParams({ ...question, format: "csv" })}`} />
          </p>
          <LeaseTable caption="Leases of this workspace" leases={leases} show={["notebook", "ended"]} />
          <Paging
            {...{ path: `/workspaces/${id}/gpu`, question: {}, search: "", label: "Pages of leases" }}
            {...{ shown: leases.length, total, next, first: after === undefined }}
          />
        </>
      )}
    </WorkspaceFrame>
  );
}
