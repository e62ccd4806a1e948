import { notFound } from "next/navigation";
import { AuditTable } from "#components/audit/audit-table.tsx";
import { LiveRefresh } from "#components/live/live.tsx";
import { ButtonLink } from "#components/ui/button.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { PageHeader } from "#components/ui/page.tsx";
import { TabLinks } from "#components/ui/tabs.tsx";
import { list } from "#server/services/audit/list.ts";
import { me } from "#server/services/session/me.ts";
import { load, pageContext } from "../../page-context.ts";

export const metadata = { title: "Audit" };

const nouns = [
  { id: "all", label: "All", prefix: undefined },
  { id: "workspace", label: "Workspaces", prefix: "workspace." },
  { id: "lease", label: "Leases", prefix: "lease." },
  { id: "gpu-server", label: "GPU servers", prefix: "gpu-server." },
  { id: "team", label: "Teams", prefix: "team." },
  { id: "user", label: "People", prefix: "user." },
  { id: "session", label: "Sign-ins", prefix: "session." },
] as const;

/** Who did what: all of it for admins, the own team's for a lead. */
export default async function AuditPage({
  searchParams,
}: {
  searchParams: Promise<Record<string, string | undefined>>;
}) {
  const ctx = await pageContext();
  const { of, before, team: wanted } = await searchParams;
  const noun = nouns.find((each) => each.id === of) ?? nouns[0];
  const person = await load(() => me(ctx));
  const led = person.teams.filter((team) => team.role === "lead");
  const team = person.isAdmin ? undefined : (led.find((each) => each.name === wanted) ?? led[0]);
  if (!person.isAdmin && !team) notFound();
  const page = await load(() =>
    list(ctx, {
      teamId: team?.id,
      action: noun.prefix,
      before: before && /^\d+$/.test(before) ? before : undefined,
      limit: 200,
    }),
  );
  const address = (more: Record<string, string>) =>
    `/audit?${new URLSearchParams({ ...(team ? { team: team.name } : {}), ...more }).toString()}`;
  return (
    <>
      {!before && <LiveRefresh topics="audit" />}
      <PageHeader title="Audit" detail={team ? `What happened in team ${team.name}` : "Who did what"} />
      <TabLinks
        label="Kinds of events"
        current={noun.id}
        tabs={nouns.map((each) => ({ id: each.id, label: each.label, href: address({ of: each.id }) }))}
      />
      {page.events.length === 0 ? (
        <EmptyState title="Nothing of this kind yet">
          What people and machines do is written here, and never changed.
        </EmptyState>
      ) : (
        <AuditTable events={page.events} />
      )}
      <div className="mt-4 flex gap-2">
        {before && <ButtonLink href={address({ of: noun.id })}>Newest</ButtonLink>}
        {page.next !== null && (
          <ButtonLink href={address({ of: noun.id, before: String(page.next) })}>Older</ButtonLink>
        )}
      </div>
    </>
  );
}
