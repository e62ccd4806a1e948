import { desc, eq, sql } from "drizzle-orm";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import { strandedHours } from "#server/db/schema/index.ts";
import { strandedNow } from "#server/services/gpu-server/stranded-now.ts";
import { KEEP_SAMPLES_MS } from "#server/services/lease/sweep-samples.ts";
import { floorTo, HOUR_S } from "./ledger.ts";

/** After a longer pause nobody knows what was stranded meanwhile, and it counts as nothing. */
const LONGEST_PAUSE_MS = 5 * 60_000;

/**
 * Writes what is stranded now (`strandedMilli`) for the time since the last look: a row for each look, which lies in one
 * hour, and after two days one for each hour.
 */
export async function settleStranded(ctx: Context): Promise<void> {
  authorize(ctx.principal, "gpu-server.control");
  const now = ctx.now();
  for (const [gpuType, milli] of await strandedNow(ctx.db, now)) {
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
        .values({ at: from, gpuType, stranded, until: to })
        // A look of no length, which only says when counting began.
        .onConflictDoUpdate({
          target: [strandedHours.at, strandedHours.gpuType],
          set: { stranded: sql`${strandedHours.stranded} + excluded.stranded`, until: to },
        });
    }
    if (last !== undefined && floorTo(HOUR_S, last.until) < floorTo(HOUR_S, now)) await addUp(ctx, gpuType);
  }
}

/** Puts the looks of each hour that is older than samples are kept into one row. */
async function addUp(ctx: Context, gpuType: string): Promise<void> {
  const before = floorTo(HOUR_S, new Date(ctx.now().getTime() - KEEP_SAMPLES_MS)).toISOString();
  const hour = sql`date_bin('1 hour', at, timestamptz 'epoch')`;
  await inTransaction(ctx, async (tx) => {
    const old = await tx.db.execute<{ at: string; stranded: string; until: string }>(sql`
      with looks as (
        delete from stranded_hours where gpu_type = ${gpuType} and at < ${before}::timestamptz and ${hour} in (
          select ${hour} from stranded_hours where gpu_type = ${gpuType} and at < ${before}::timestamptz and at <> ${hour})
        returning *)
      select ${hour} as at, sum(stranded)::bigint as stranded, max(until) as until from looks group by 1`);
    if (old.length === 0) return;
    await tx.db.execute(sql`insert into stranded_hours (at, gpu_type, stranded, until)
      select at, ${gpuType}::text, stranded, until
      from json_to_recordset(${JSON.stringify(old)}::json) as hours (at timestamptz, stranded bigint, until timestamptz)`);
  });
}

function since(until: Date | undefined, now: Date): Date {
  return until !== undefined && now.getTime() - until.getTime() <= LONGEST_PAUSE_MS ? until : now;
}

/** The parts of a stretch in each hour; a stretch of no length is one part, so that it is known when counting began. */
function byHour(from: Date, to: Date): { from: Date; to: Date }[] {
  const next = new Date(floorTo(HOUR_S, from).getTime() + HOUR_S * 1000);
  return to <= next ? [{ from, to }] : [{ from, to: next }, ...byHour(next, to)];
}
