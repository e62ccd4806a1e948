import { listBases } from "#server/services/image/list-bases.ts";
import { names as teamNames } from "#server/services/team/names.ts";
import type { PageContext } from "../../page-context.ts";

/** For which teams whoever looks may propose, and what a proposal begins with. */
export async function forProposals(ctx: PageContext) {
  const { isAdmin, teams: roles } = ctx.principal;
  const [teams, { bases }] = await Promise.all([teamNames(ctx), listBases(ctx)]);
  return { isAdmin, teams: teams.filter(({ id }) => isAdmin || roles[id] === "lead"), bases };
}
