import { sql } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";

/** So long single samples are kept; their sums by the hour stay as long as the lease. */
export const KEEP_SAMPLES_MS = 2 * 86_400_000;
/** So many rows are removed at once: a table that was never swept must not hold the others up. */
const MOST_ROWS = 50_000;

/** Removes samples that have had their time, the oldest first. Tells whether there may be more of them. */
export async function sweepSamples(ctx: Context): Promise<boolean> {
  authorize(ctx.principal, "gpu-server.control");
  const before = new Date(ctx.now().getTime() - KEEP_SAMPLES_MS).toISOString();
  const gone = await ctx.db.execute(sql`delete from usage_samples where seq in (
    select seq from usage_samples where at < ${before}::timestamptz order by seq limit ${MOST_ROWS}::int)`);
  return gone.count === MOST_ROWS;
}
