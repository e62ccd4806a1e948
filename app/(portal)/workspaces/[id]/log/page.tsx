import type { Metadata } from "next";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { FollowedLog } from "#components/workspace/followed-log.tsx";
import { events } from "#server/services/workspace/events.ts";
import { load, pageContext } from "../../../../page-context.ts";
import { pageTimeZone } from "../../../../page-time-zone.ts";
import { readWorkspace, WorkspaceFrame } from "../workspace-frame.tsx";

type Props = { params: Promise<{ id: string }> };

export async function generateMetadata({ params }: Props): Promise<Metadata> {
  return { title: `Log of ${(await readWorkspace((await params).id)).name}` };
}

/** Every step of the starts that are kept, and the newest lines they printed, those to come as well. */
export default async function WorkspaceLogPage({ params }: Props) {
  const { id } = await params;
  const ctx = await pageContext();
  const workspace = await readWorkspace(id);
  const log = await load(() => events(ctx, { id, limit: 2000 }));
  return (
    <WorkspaceFrame workspace={workspace} tab="log">
      {log.events.length === 0 ? (
        <EmptyState title="No line yet">Lines appear here as the workspace starts.</EmptyState>
      ) : (
        <FollowedLog id={id} events={log.events} zone={await pageTimeZone()} />
      )}
    </WorkspaceFrame>
  );
}
