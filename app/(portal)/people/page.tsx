import { PageHeader } from "#components/ui/page.tsx";
import { InvitePerson } from "#components/user/invite-person.tsx";
import { OpenSample } from "#components/user/open-sample.tsx";
import { PeopleTable } from "#components/user/people-table.tsx";
import { list as listTeams } from "#server/services/team/list.ts";
import { list as listUsers } from "#server/services/user/list.ts";
import { load, pageContext } from "../../page-context.ts";

export const metadata = { title: "People" };

/** Everybody with an account; inviting more; a window as the sample user. */
export default async function PeoplePage() {
  const ctx = await pageContext();
  const [{ users }, { teams }] = await load(() => Promise.all([listUsers(ctx), listTeams(ctx)]));
  return (
    <>
      <PageHeader
        title="People"
        actions={
          <>
            <OpenSample />
            <InvitePerson variant="primary" teams={teams.map(({ id, name }) => ({ id, name }))} />
          </>
        }
      />
      <PeopleTable users={users} />
    </>
  );
}
