import { inArray } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { TeamList } from "#server/contracts/team.ts";
import { teams } from "#server/db/schema/index.ts";
import { readTeams } from "#server/services/team/view.ts";

/** One's own teams; for an admin all of them. */
export async function list(ctx: Context): Promise<TeamList> {
  authorize(ctx.principal, "team.list");
  if (ctx.principal.kind !== "user" || ctx.principal.isAdmin) return { teams: await readTeams(ctx, undefined) };
  const own = Object.keys(ctx.principal.teams);
  return { teams: own.length === 0 ? [] : await readTeams(ctx, inArray(teams.id, own)) };
}
