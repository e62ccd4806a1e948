import { LiveRefresh } from "#components/live/live.tsx";
import { PageHeader } from "#components/ui/page.tsx";
import { Paging, SearchList } from "#components/ui/paging.tsx";
import { IdentityGroupSection } from "#components/user/identity-group-section.tsx";
import { InvitePerson } from "#components/user/invite-person.tsx";
import { OpenSample } from "#components/user/open-sample.tsx";
import { PeopleTable } from "#components/user/people-table.tsx";
import { userId } from "#server/contracts/common.ts";
import { list as listGroups } from "#server/services/identity-group/list.ts";
import { names as teamNames } from "#server/services/team/names.ts";
import { list as listUsers } from "#server/services/user/list.ts";
import { loadFrom, pageContext } from "../../page-context.ts";

export const metadata = { title: "People" };

type Props = { searchParams: Promise<Record<string, string | string[] | undefined>> };

const PAGE = 50;

/** Everybody with an account; inviting more; what groups of the identity provider give; a window as the sample user. */
export default async function PeoplePage({ searchParams }: Props) {
  const ctx = await pageContext();
  const asked = await searchParams;
  const search = typeof asked.search === "string" ? asked.search.slice(0, 100) : "";
  const after = userId.safeParse(asked.after).data;
  const [{ users, total, next }, teams, { groups, claim }] = await loadFrom(after, (from) =>
    Promise.all([listUsers(ctx, { search, limit: PAGE, after: from }), teamNames(ctx), listGroups(ctx)]),
  );
  const place = { path: "/people", question: {}, search, label: "Search people" };
  return (
    <>
      <LiveRefresh topics={["people"]} />
      <PageHeader
        title="People"
        actions={
          <>
            <OpenSample />
            <InvitePerson variant="primary" teams={teams} />
          </>
        }
      />
      <SearchList {...place} />
      <PeopleTable users={users} ownId={ctx.principal.userId} />
      <Paging {...place} shown={users.length} total={total} next={next} first={after === undefined} />
      {claim !== null && (
        <div className="mt-8">
          <IdentityGroupSection groups={groups} claim={claim} teams={teams} />
        </div>
      )}
    </>
  );
}
