import { ProposeEnvironment } from "#components/environment/propose-environment.tsx";
import { VersionTable } from "#components/environment/version-table.tsx";
import { LiveRefresh } from "#components/live/live.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { PageHeader } from "#components/ui/page.tsx";
import { listVersions } from "#server/services/image/list-versions.ts";
import { load, pageContext } from "../../page-context.ts";
import { forProposals } from "./for-proposals.ts";

export const metadata = { title: "Environments" };

/** What can be launched, what could once, and what people have proposed. */
export default async function EnvironmentsPage() {
  const ctx = await pageContext();
  const [{ versions }, { teams, bases, isAdmin }] = await load(() =>
    Promise.all([listVersions(ctx), forProposals(ctx)]),
  );
  const proposed = versions.filter(
    ({ proposed, state }) => proposed !== null && state !== "approved" && state !== "retired",
  );
  return (
    <>
      <LiveRefresh topics={["setup", "workspace", "environment"]} />
      <PageHeader
        title="Environments"
        detail="The software of a workspace. Some environments come with the installation. Propose, test and approve others here."
        actions={teams.length > 0 && bases.length > 0 && <ProposeEnvironment teams={teams} bases={bases} />}
      />
      {versions.length === 0 ? (
        <EmptyState title="No environment yet">Available when startup completes.</EmptyState>
      ) : (
        <VersionTable
          versions={[...proposed, ...versions.filter((each) => !proposed.includes(each))]}
          isAdmin={isAdmin}
        />
      )}
    </>
  );
}
