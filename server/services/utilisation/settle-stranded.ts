import { desc, eq, sql } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { strandedHours } from "#server/db/schema/index.ts";
import { strandedMilli } from "#server/scheduler/stranded.ts";
import { knownGpuTypes, loadWorld } from "#server/services/lease/world.ts";
import { floorTo, HOUR_S } from "./ledger.ts";

/** After a longer pause nobody knows what was stranded meanwhile, and it counts as nothing. */
const LONGEST_PAUSE_MS = 5 * 60_000;

/** Adds what is free now and serves nobody, for the time since the last look, to the hours that this time lies in. */
export async function settleStranded(ctx: Context): Promise<void> {
  authorize(ctx.principal, "gpu-server.control");
  const now = ctx.now();
  for (const gpuType of await knownGpuTypes(ctx.db)) {
    const milli = strandedMilli(await loadWorld(ctx.db, gpuType, now));
    const [last] = await ctx.db
      .select({ until: strandedHours.until })
      .from(strandedHours)
      .where(eq(strandedHours.gpuType, gpuType))
      .orderBy(desc(strandedHours.at))
      .limit(1);
    for (const { from, to } of byHour(since(last?.until, now), now)) {
      const stranded = milli * (to.getTime() - from.getTime()) * 1000;
      await ctx.db
        .insert(strandedHours)
        .values({ at: floorTo(HOUR_S, from), gpuType, stranded, until: to })
        .onConflictDoUpdate({
          target: [strandedHours.at, strandedHours.gpuType],
          set: { stranded: sql`${strandedHours.stranded} + excluded.stranded`, until: to },
        });
    }
  }
}

function since(until: Date | undefined, now: Date): Date {
  return until !== undefined && now.getTime() - until.getTime() <= LONGEST_PAUSE_MS ? until : now;
}

/** The parts of a stretch in each hour; a stretch of no length is one part, so that it is known when counting began. */
function byHour(from: Date, to: Date): { from: Date; to: Date }[] {
  const next = new Date(floorTo(HOUR_S, from).getTime() + HOUR_S * 1000);
  return to <= next ? [{ from, to }] : [{ from, to: next }, ...byHour(next, to)];
}
