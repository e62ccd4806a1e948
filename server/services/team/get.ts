import { asc, eq } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { type TeamInput, type TeamView, teamInput } from "#server/contracts/team.ts";
import { memberships, teams, users } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { readTeams } from "#server/services/team/view.ts";

/** A team with its people. */
export async function get(ctx: Context, raw: TeamInput): Promise<TeamView> {
  const { id } = parse(teamInput, raw);
  authorize(ctx.principal, "team.read", { teamId: id });
  const [summary] = await readTeams(ctx, eq(teams.id, id));
  if (summary === undefined) throw new SluiceError("not-found", "There is no such team.");
  const members = await ctx.db
    .select({
      userId: users.id,
      name: users.name,
      email: users.email,
      role: memberships.role,
      isSample: users.isSample,
      byGroup: memberships.byGroup,
      version: memberships.version,
    })
    .from(memberships)
    .innerJoin(users, eq(users.id, memberships.userId))
    .where(eq(memberships.teamId, id))
    .orderBy(asc(users.name), asc(users.id));
  return { ...summary, members };
}
