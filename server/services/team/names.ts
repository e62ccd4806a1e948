import { inArray } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { compareNames } from "#server/contracts/names.ts";
import { teams } from "#server/db/schema/index.ts";

type TeamName = { id: string; name: string };

/** The teams that `list` has, without what they may use and do: for whoever chooses among them. */
export async function names(ctx: Context): Promise<TeamName[]> {
  return (await readNames(ctx)).flatMap(({ id, name, archivedAt }) => (archivedAt === null ? [{ id, name }] : []));
}

/** The same with those that are archived, last and said to be so: what they held and cost stays. */
export async function namesOfAllTimes(ctx: Context): Promise<TeamName[]> {
  const all = await readNames(ctx);
  return [
    ...all.filter(({ archivedAt }) => archivedAt === null).map(({ id, name }) => ({ id, name })),
    ...all.filter(({ archivedAt }) => archivedAt !== null).map(({ id, name }) => ({ id, name: `${name} (archived)` })),
  ];
}

async function readNames(ctx: Context) {
  const { principal } = ctx;
  authorize(principal, "team.list");
  const own = principal.kind !== "user" || principal.isAdmin ? undefined : Object.keys(principal.teams);
  const rows = await ctx.db
    .select({ id: teams.id, name: teams.name, archivedAt: teams.archivedAt })
    .from(teams)
    .where(own === undefined ? undefined : inArray(teams.id, own));
  return rows.sort((a, b) => compareNames(a.name, b.name));
}
