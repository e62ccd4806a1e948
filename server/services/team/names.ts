import { inArray, isNull } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { compareNames } from "#server/contracts/names.ts";
import { teams } from "#server/db/schema/index.ts";

/** The teams that `list` has, without what they may use and do: for whoever chooses among them. */
export async function names(ctx: Context): Promise<{ id: string; name: string }[]> {
  const { principal } = ctx;
  authorize(principal, "team.list");
  const own = principal.kind !== "user" || principal.isAdmin ? undefined : Object.keys(principal.teams);
  const rows = await ctx.db
    .select({ id: teams.id, name: teams.name })
    .from(teams)
    .where(own === undefined ? isNull(teams.archivedAt) : inArray(teams.id, own));
  return rows.sort((a, b) => compareNames(a.name, b.name));
}
