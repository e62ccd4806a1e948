import { writeDuration } from "#components/duration.ts";
import { LiveRefresh } from "#components/live/live.tsx";
import { effectOf, POLICY_TIMES } from "#components/team/policy-fields.ts";
import { PolicyTable } from "#components/team/policy-table.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { Card, PageHeader, Section } from "#components/ui/page.tsx";
import type { TeamPolicyView } from "#server/contracts/sharing.ts";
import { listPolicies } from "#server/services/team/list-policies.ts";
import { load, pageContext } from "../../page-context.ts";

export const metadata = { title: "Policies" };

/** Limits of idle and lease times, and whether teams share a GPU: the defaults, and team by team. */
export default async function PoliciesPage() {
  const ctx = await pageContext();
  const { teams } = await load(() => listPolicies(ctx));
  const everywhere = teams[0]?.policy.installation;
  return (
    <>
      <LiveRefresh topics={["pool", "workspace"]} seconds={10} />
      <PageHeader title="Policies" detail="Limits of idle and lease times, and whether teams share a GPU" />
      {everywhere === undefined ? (
        <EmptyState title="No team yet">Create a team to give it a policy.</EmptyState>
      ) : (
        <>
          <Section
            title="Defaults"
            detail="For teams without a value of their own; set in the installation's configuration"
          >
            <Everywhere policy={everywhere} />
          </Section>
          <Section title="Teams" detail="A team's own values are bold">
            <PolicyTable teams={teams} />
          </Section>
        </>
      )}
    </>
  );
}

function Everywhere({ policy }: { policy: TeamPolicyView["installation"] }) {
  return (
    <Card>
      <dl className="grid gap-px overflow-hidden rounded-lg bg-line *:bg-surface sm:grid-cols-2 xl:grid-cols-3">
        {POLICY_TIMES.map(({ name, label, never }) => {
          const text = never !== undefined && policy[name] === 0 ? "never" : writeDuration(policy[name]);
          return (
            <div key={name} className="px-4 py-3">
              <dt className="text-sm text-ink-2">{label}</dt>
              <dd className="figures mt-0.5 text-lg font-medium">{text}</dd>
              <dd className="mt-0.5 text-sm text-ink-2">{effectOf(name, text)}</dd>
            </div>
          );
        })}
      </dl>
    </Card>
  );
}
