import { asc, isNull } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { StopList } from "#server/contracts/sharing.ts";
import { stopSwitches } from "#server/db/schema/index.ts";

/** Stops that are on, for the banner: everybody may know why nothing is granted. */
export async function list(ctx: Context): Promise<StopList> {
  authorize(ctx.principal, "stop.list");
  const rows = await ctx.db
    .select()
    .from(stopSwitches)
    .where(isNull(stopSwitches.liftedAt))
    .orderBy(asc(stopSwitches.createdAt));
  return {
    stops: rows.map(({ id, scope, subjectId, reason, createdAt }) => ({
      ...{ id, scope, subjectId, reason, createdAt: createdAt.toISOString() },
    })),
  };
}
