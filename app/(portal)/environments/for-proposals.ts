import { listBases } from "#server/services/image/list-bases.ts";
import { list as listTeams } from "#server/services/team/list.ts";
import type { PageContext } from "../../page-context.ts";

/** For which teams whoever looks may propose, and what a proposal begins with. */
export async function forProposals(ctx: PageContext) {
  const { isAdmin, teams: roles } = ctx.principal;
  const [{ teams }, { bases }] = await Promise.all([listTeams(ctx), listBases(ctx)]);
  const leads = teams.filter(({ id }) => isAdmin || roles[id] === "lead");
  return { isAdmin, teams: leads.map(({ id, name }) => ({ id, name })), bases };
}
