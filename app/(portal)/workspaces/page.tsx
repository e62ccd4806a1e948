import { LiveRefresh } from "#components/live/live.tsx";
import { BootSteps } from "#components/setup/boot-steps.tsx";
import { ButtonLink } from "#components/ui/button-link.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { PageHeader, Section } from "#components/ui/page.tsx";
import { Paging, SearchList } from "#components/ui/paging.tsx";
import { LaunchAgainButton } from "#components/workspace/launch-again.tsx";
import { RemovedTable } from "#components/workspace/removed-table.tsx";
import { WorkspaceTable } from "#components/workspace/workspace-table.tsx";
import { workspaceId } from "#server/contracts/common.ts";
import { status } from "#server/services/setup/status.ts";
import { list } from "#server/services/workspace/list.ts";
import { listRemoved } from "#server/services/workspace/list-removed.ts";
import { loadFrom, pageContext } from "../../page-context.ts";
import { launchAgain } from "./launch-again.ts";

export const metadata = { title: "Workspaces" };

type Props = { searchParams: Promise<Record<string, string | string[] | undefined>> };

const PAGE = 50;

/** Home: one's own workspaces first, then those one answers for. */
export default async function WorkspacesPage({ searchParams }: Props) {
  const ctx = await pageContext();
  const asked = await searchParams;
  const one = (name: string) => (typeof asked[name] === "string" ? asked[name] : "");
  const search = one("search").slice(0, 100);
  const after = workspaceId.safeParse(asked.after).data;
  const [{ workspaces: mine }, { workspaces: shared }, others, removed, setup] = await loadFrom(after, (from) =>
    Promise.all([
      list(ctx, { scope: "mine", limit: 200 }),
      list(ctx, { scope: "shared", limit: 200 }),
      list(ctx, { scope: "others", search, limit: PAGE, after: from }),
      listRemoved(ctx),
      status(ctx),
    ]),
  );
  const names = mine.map(({ name }) => name);
  const again = await launchAgain(names);
  const answersForOthers = ctx.principal.isAdmin || Object.values(ctx.principal.teams).includes("lead");
  const place = { path: "/workspaces", question: {}, search, label: "Search workspaces of others" };
  return (
    <>
      <LiveRefresh topics={["mine", "usage"]} />
      {answersForOthers && <LiveRefresh topics={["workspace", "lease"]} seconds={2} />}
      <PageHeader
        title="Workspaces"
        actions={
          <>
            {again && <LaunchAgainButton again={again} />}
            <ButtonLink href="/workspaces/new" variant="primary">
              Launch
            </ButtonLink>
          </>
        }
      />
      <div className="mb-8 flex flex-col gap-6 empty:hidden">
        <BootSteps steps={setup.steps} />
      </div>
      {mine.length === 0 ? (
        <div className="mb-8">
          <EmptyState
            title="No workspace yet"
            action={
              <div className="flex flex-wrap gap-2">
                <ButtonLink href="/workspaces/new" variant="primary">
                  Launch the first
                </ButtonLink>
                <ButtonLink href="/tour">Take the tour (90 seconds)</ButtonLink>
              </div>
            }
          >
            A workspace is JupyterLab with files and packages of your own. In a notebook, <code>%gpu attach 0.5</code>{" "}
            borrows half a GPU and <code>%gpu detach</code> gives it back; the example notebooks show both.
          </EmptyState>
        </div>
      ) : (
        <div className="mb-8">
          <WorkspaceTable workspaces={mine} of="mine" />
        </div>
      )}
      {shared.length > 0 && (
        <Section title="Shared with me" detail="Their owners invited you">
          <WorkspaceTable workspaces={shared} of="shared" />
        </Section>
      )}
      {(others.total > 0 || search !== "") && (
        <Section title="Workspaces of others" detail="For the teams that you lead">
          {(others.total > PAGE || search !== "") && <SearchList {...place} />}
          <WorkspaceTable workspaces={others.workspaces} of="others" />
          <Paging {...place} shown={others.workspaces.length} total={others.total} next={others.next} first={!after} />
        </Section>
      )}
      {removed.total > 0 && (
        <Section title="Removed" detail="Restore a workspace before its files are deleted">
          <RemovedTable workspaces={removed.workspaces} withOwner={answersForOthers} />
          {removed.total > removed.workspaces.length && (
            <p className="mt-2 text-sm text-ink-2">
              Showing {removed.workspaces.length} of {removed.total}, earliest deletion first.
            </p>
          )}
        </Section>
      )}
    </>
  );
}
