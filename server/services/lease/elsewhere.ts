import { and, asc, eq, ne } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import type { LeaseExplanation } from "#server/contracts/lease.ts";
import { quotas } from "#server/db/schema/index.ts";
import { fitsNow } from "#server/scheduler/fits-now.ts";
import type { RequestRow } from "./answer.ts";
import { shownQueue } from "./shown.ts";

/**
 * What would be granted at once of the other GPU types of which the team has a quota, if this were asked for there. A
 * notebook with parked memory stays where that is.
 */
export async function elsewhere(ctx: Context, request: RequestRow): Promise<LeaseExplanation["elsewhere"]> {
  if (request.pinnedGpuId !== null) return [];
  const { id: requestId, teamId, userId, maxDevices, needs, kind } = request;
  const asker = {
    ...{ requestId, teamId, userId, who: "", maxDevices, kind, guaranteedOnly: request.guaranteedOnly === 1 },
    ...(needs === null ? {} : { needs }),
  };
  const types = await ctx.db
    .select({ gpuType: quotas.gpuType })
    .from(quotas)
    .where(and(eq(quotas.teamId, teamId), ne(quotas.gpuType, request.gpuType)))
    .orderBy(asc(quotas.gpuType));
  const found = await Promise.all(
    types.map(async ({ gpuType }) => {
      const { world } = await shownQueue(ctx.db, gpuType, [], ctx.now());
      return { gpuType, fitsNowMilli: fitsNow(asker, world) };
    }),
  );
  return found.filter(({ fitsNowMilli }) => fitsNowMilli > 0);
}
