import { and, asc, eq, inArray, isNull, or, type SQL } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { StopList } from "#server/contracts/sharing.ts";
import { stopSwitches } from "#server/db/schema/index.ts";

/**
 * Stops that are on, for the banner: those of all leases, of the own teams and of oneself; for an admin all of them.
 * Why somebody else's leases are stopped is no business of others.
 */
export async function list(ctx: Context): Promise<StopList> {
  authorize(ctx.principal, "stop.list");
  const rows = await ctx.db
    .select()
    .from(stopSwitches)
    .where(and(isNull(stopSwitches.liftedAt), bindsReader(ctx)))
    .orderBy(asc(stopSwitches.createdAt));
  return {
    stops: rows.map(({ id, scope, subjectId, reason, createdAt }) => ({
      ...{ id, scope, subjectId, reason, createdAt: createdAt.toISOString() },
    })),
  };
}

function bindsReader({ principal }: Context): SQL | undefined {
  if (principal.kind !== "user" || principal.isAdmin) return undefined;
  const { scope, subjectId } = stopSwitches;
  const teamIds = Object.keys(principal.teams);
  return or(
    eq(scope, "all"),
    and(eq(scope, "user"), eq(subjectId, principal.userId)),
    teamIds.length === 0 ? undefined : and(eq(scope, "team"), inArray(subjectId, teamIds)),
  );
}
