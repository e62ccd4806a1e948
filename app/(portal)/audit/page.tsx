import { notFound } from "next/navigation";
import { AuditFilter } from "#components/audit/audit-filter.tsx";
import { AuditTable } from "#components/audit/audit-table.tsx";
import { LiveRefresh } from "#components/live/live.tsx";
import { ButtonLink } from "#components/ui/button-link.tsx";
import { DownloadCsv } from "#components/ui/download-csv.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { PageHeader } from "#components/ui/page.tsx";
import { TabLinks } from "#components/ui/tabs.tsx";
import { list } from "#server/services/audit/list.ts";
import { me } from "#server/services/session/me.ts";
import { load, pageContext } from "../../page-context.ts";
import { pageTimeZone } from "../../page-time-zone.ts";
import { askedDays } from "../asked-days.ts";

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

/** Who did what: all of it for admins, the own team's for a lead; by whom, to what and when, as the address says. */
export default async function AuditPage({
  searchParams,
}: {
  searchParams: Promise<Record<string, string | string[] | undefined>>;
}) {
  const ctx = await pageContext();
  const asked = await searchParams;
  const one = (name: string) => (typeof asked[name] === "string" ? asked[name].slice(0, 100) : "");
  const noun = nouns.find((each) => each.id === one("of")) ?? nouns[0];
  const person = await load(() => me(ctx));
  const led = person.teams.filter((team) => team.role === "lead");
  const { isAdmin } = ctx.principal;
  const team = isAdmin ? undefined : (led.find((each) => each.name === one("team")) ?? led[0]);
  if (!isAdmin && !team) notFound();
  const zone = await pageTimeZone();
  const days = askedDays({ from: one("from"), to: one("to") }, { now: ctx.now(), zone });
  const question = {
    who: one("who"),
    did: one("did").trim().slice(0, 59),
    what: one("what"),
    from: days.from,
    to: days.to,
  };
  const before = /^[1-9]\d{0,14}$/.test(one("before")) ? one("before") : undefined;
  const filter = {
    ...{ teamId: team?.id, action: actionOf(question.did) ?? noun.prefix, who: question.who, what: question.what },
    ...days.span,
  };
  const page = days.wrong ? { events: [], next: null } : await load(() => list(ctx, { ...filter, before, limit: 200 }));
  const kept = { ...(team ? { team: team.name } : {}), of: noun.id };
  const address = (more: Record<string, string>) => `/audit?${written({ ...kept, ...question, ...more })}`;
  return (
    <>
      {!before && <LiveRefresh topics={["audit"]} />}
      <PageHeader
        title="Audit"
        detail={team ? `What happened in team ${team.name}` : "Who did what"}
        actions={<DownloadCsv href={`/api/v1/audit?${written({ ...filter, format: "csv" })}`} />}
      />
      <TabLinks
        label="Kinds of events"
        current={noun.id}
        tabs={nouns.map((each) => ({ id: each.id, label: each.label, href: address({ of: each.id }) }))}
      />
      <AuditFilter key={written(question)} kept={kept} question={question} />
      {page.events.length === 0 ? (
        <EmptyState title={days.wrong?.title ?? "Nothing of this kind"}>
          {days.wrong?.hint ?? "What people and machines do is written here, and never changed."}
        </EmptyState>
      ) : (
        <AuditTable events={page.events} />
      )}
      <div className="mt-4 flex gap-2">
        {before && <ButtonLink href={address({})}>Newest</ButtonLink>}
        {page.next !== null && <ButtonLink href={address({ before: String(page.next) })}>Older</ButtonLink>}
      </div>
    </>
  );
}

/** What `list` takes: an action, or with a trailing dot all of a noun; undefined for nothing typed. */
function actionOf(typed: string): string | undefined {
  if (typed === "") return undefined;
  return typed.includes(".") ? typed : `${typed}.`;
}

/** A query without what is not asked. */
function written(query: Record<string, string | undefined>): string {
  const asked = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return new URLSearchParams(asked).toString();
}
