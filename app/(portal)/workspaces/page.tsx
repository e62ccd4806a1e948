import { LiveRefresh } from "#components/live/live.tsx";
import { BootSteps } from "#components/setup/boot-steps.tsx";
import { ButtonLink } from "#components/ui/button.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { PageHeader, Section } from "#components/ui/page.tsx";
import { WorkspaceTable } from "#components/workspace/workspace-table.tsx";
import { status } from "#server/services/setup/status.ts";
import { list } from "#server/services/workspace/list.ts";
import { load, pageContext } from "../../page-context.ts";

export const metadata = { title: "Workspaces" };

/** Home: one's own workspaces first, then those one answers for. */
export default async function WorkspacesPage() {
  const ctx = await pageContext();
  const [{ workspaces }, setup] = await load(() => Promise.all([list(ctx, { scope: "all" }), status(ctx)]));
  const mine = workspaces.filter((each) => each.owner.id === ctx.principal.userId);
  const others = workspaces.filter((each) => each.owner.id !== ctx.principal.userId);
  return (
    <>
      <LiveRefresh topics="workspace,lease,usage" />
      <PageHeader
        title="Workspaces"
        actions={
          <ButtonLink href="/workspaces/new" variant="primary">
            Launch
          </ButtonLink>
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
              <ButtonLink href="/workspaces/new" variant="primary">
                Launch the first
              </ButtonLink>
            }
          >
            A workspace is JupyterLab with files and packages of your own. In a notebook, <code>%gpu attach 0.5</code>{" "}
            borrows half a GPU and <code>%gpu detach</code> gives it back; the example notebooks show both.
          </EmptyState>
        </div>
      ) : (
        <div className="mb-8">
          <WorkspaceTable workspaces={mine} withOwner={false} />
        </div>
      )}
      {others.length > 0 && (
        <Section title="Workspaces of others" detail="Those of the teams that you answer for">
          <WorkspaceTable workspaces={others} withOwner />
        </Section>
      )}
    </>
  );
}
