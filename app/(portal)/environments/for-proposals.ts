import type { Context } from "#server/context.ts";
import { listBases } from "#server/services/image/list-bases.ts";
import { list as listTeams } from "#server/services/team/list.ts";

/** For which teams whoever looks may propose, and what a proposal begins with. */
export async function forProposals(ctx: Context) {
  const { principal } = ctx;
  const isAdmin = principal.kind === "user" && principal.isAdmin;
  const [{ teams }, { bases }] = await Promise.all([listTeams(ctx), listBases(ctx)]);
  const leads = teams.filter(({ id }) => isAdmin || (principal.kind === "user" && principal.teams[id] === "lead"));
  return { isAdmin, teams: leads.map(({ id, name }) => ({ id, name })), bases };
}
