import { notFound } from "next/navigation";
import { me } from "#server/services/session/me.ts";
import { namesOfAllTimes } from "#server/services/team/names.ts";
import type { PageContext } from "../page-context.ts";

export type LedTeams = { isAdmin: boolean; teams: { id: string; name: string }[] };

/** The teams whose figures a person may see: all for an admin, those that are archived, too; the led ones for a lead; others do not find the page. */
export async function ledTeams(ctx: PageContext): Promise<LedTeams> {
  if (ctx.principal.isAdmin) return { isAdmin: true, teams: await namesOfAllTimes(ctx) };
  const person = await me(ctx);
  const teams = person.teams.filter((team) => team.role === "lead").map(({ id, name }) => ({ id, name }));
  if (teams.length === 0) notFound();
  return { isAdmin: false, teams };
}
