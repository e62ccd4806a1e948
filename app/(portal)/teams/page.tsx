import { LiveRefresh } from "#components/live/live.tsx";
import { ArchivedTable } from "#components/team/archived-table.tsx";
import { NewTeam } from "#components/team/new-team.tsx";
import { QuotaMatrix } from "#components/team/quota-matrix.tsx";
import { TeamTable } from "#components/team/team-table.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { PageHeader, Section } from "#components/ui/page.tsx";
import { list } from "#server/services/team/list.ts";
import { load, pageContext } from "../../page-context.ts";

export const metadata = { title: "Teams" };

/** One's teams with what they use; for an admin all of them by GPU type, and what is guaranteed to nobody. */
export default async function TeamsPage() {
  const ctx = await pageContext();
  const { teams, pool, archived } = await load(() => list(ctx));
  const { isAdmin } = ctx.principal;
  return (
    <>
      <LiveRefresh topics={["lease", "pool"]} seconds={5} />
      <PageHeader title={isAdmin ? "Teams & quotas" : "Teams"} actions={isAdmin && <NewTeam />} />
      {teams.length === 0 ? (
        <EmptyState title={isAdmin ? "No team yet" : "You belong to no team yet"}>
          {isAdmin ? "A team owns workspaces and holds quotas." : "Ask a team lead or an admin to add you."}
        </EmptyState>
      ) : isAdmin ? (
        <div className="mb-8">
          <QuotaMatrix teams={teams} pool={pool} />
        </div>
      ) : (
        <div className="mb-8">
          <TeamTable teams={teams} />
        </div>
      )}
      {archived.length > 0 && (
        <Section title="Archived" detail="Usage, costs and audit are kept">
          <ArchivedTable teams={archived} />
        </Section>
      )}
    </>
  );
}
