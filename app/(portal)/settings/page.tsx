import { cookies } from "next/headers";
import { TokenSection } from "#components/access-token/token-section.tsx";
import { SessionSection } from "#components/session/session-section.tsx";
import { ChooseTheme } from "#components/shell/choose-theme.tsx";
import { ChooseTimeZone } from "#components/time-zone/choose-time-zone.tsx";
import { Card, Facts, PageHeader, Section } from "#components/ui/page.tsx";
import { ChangePassword } from "#components/user/change-password.tsx";
import type { Me } from "#server/contracts/session.ts";
import { readTheme, themeCookie } from "#server/contracts/theme.ts";
import { env } from "#server/env.ts";
import { list as listTokens } from "#server/services/access-token/list.ts";
import { list as listSessions } from "#server/services/session/list.ts";
import { me } from "#server/services/session/me.ts";
import { load, pageContext } from "../../page-context.ts";

export const metadata = { title: "Settings" };

/** Who one is here, the password, the tokens for scripts, and where one is signed in. */
export default async function SettingsPage({
  searchParams,
}: {
  searchParams: Promise<{ "change-password"?: string }>;
}) {
  const ctx = await pageContext();
  const [person, { tokens }, { sessions }] = await load(() =>
    Promise.all([me(ctx), listTokens(ctx), listSessions(ctx)]),
  );
  const asked = (await searchParams)["change-password"] !== undefined;
  const password = person.hasPassword ? <ChangePassword email={person.email} initiallyOpen={asked} /> : whyNone(person);
  return (
    <div className="max-w-4xl">
      <PageHeader title="Settings" />
      <Section title="Profile">
        <Card className="px-4 py-3.5">
          <Facts
            rows={[
              ["Name", person.name],
              ["E-mail", person.email],
              ["Role", person.isAdmin ? "admin" : person.isSample ? "sample user" : "user"],
              [
                "Teams",
                person.teams.length === 0
                  ? "none"
                  : person.teams.map((team) => `${team.name}${team.role === "lead" ? " (lead)" : ""}`).join(", "),
              ],
              ["Password", password],
            ]}
          />
          <div className="mt-4 flex flex-wrap gap-x-6 gap-y-4">
            <ChooseTimeZone />
            <ChooseTheme initial={readTheme((await cookies()).get(themeCookie)?.value)} />
          </div>
        </Card>
      </Section>
      <TokenSection tokens={tokens} callsPerMinute={env().SLUICE_TOKEN_REQUESTS_PER_MINUTE} />
      <SessionSection sessions={sessions} />
    </div>
  );
}

/** What somebody signs in with who has no password to change here. */
function whyNone({ byProvider, isSample }: Me): string {
  if (byProvider) return `none here: you sign in with ${env().SLUICE_OIDC_NAME}, and change it there`;
  return isSample ? "none: an admin opens the sample user" : "none: ask an admin for a link to choose one";
}
