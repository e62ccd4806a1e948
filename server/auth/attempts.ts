/** What people who are not signed in try, counted in windows of a quarter of an hour, so that guessing stays slow. */
import { and, eq, inArray, lte, sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { signInFailures } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { hashSecret } from "#server/ids.ts";

export const WINDOW_MS = 15 * 60_000;

/** Maximum counts in the table. Anyone can begin one, with any e-mail and from many networks. */
const MOST_COUNTS = 20_000;
/** Interval of removals, in new counts of this process; the first new count removes too. */
const SWEEP_EVERY = 256;
let begunHere = 0;

/** What is counted, by a hash: the table tells nobody's e-mail and nobody's address. */
export type Counted = string & { readonly counted: unique symbol };
export const counted = (...parts: string[]): Counted => hashSecret(parts.join(" ")) as Counted;

/** Counts one more, before what was tried is looked at: many at once cannot slip through. */
export async function countOne(ctx: Context, key: Counted): Promise<{ count: number; retryAfterSeconds: number }> {
  const now = ctx.now();
  const begin = new Date(now.getTime() - WINDOW_MS);
  const over = sql`${signInFailures.since} < ${begin.toISOString()}::timestamptz`;
  const [row] = await ctx.db
    .insert(signInFailures)
    .values({ key, count: 1, since: now })
    .onConflictDoUpdate({
      target: signInFailures.key,
      set: {
        count: sql`case when ${over} then 1 else ${signInFailures.count} + 1 end`,
        since: sql`case when ${over} then ${now.toISOString()}::timestamptz else ${signInFailures.since} end`,
      },
    })
    .returning({ count: signInFailures.count, since: signInFailures.since });
  const { count, since } = row ?? { count: 1, since: now };
  if (count === 1) {
    if (begunHere % SWEEP_EVERY === 0) await sweepAttempts(ctx);
    begunHere += 1;
  }
  const left = since.getTime() + WINDOW_MS - now.getTime();
  return { count, retryAfterSeconds: Math.max(1, Math.ceil(left / 1000)) };
}

/** Counts one more, and throws `too-many` beyond the limit. */
export async function allowAttempt(ctx: Context, key: Counted, limit: number, what: string): Promise<void> {
  const { count, retryAfterSeconds } = await countOne(ctx, key);
  if (count <= limit) return;
  const minutes = Math.ceil(retryAfterSeconds / 60);
  throw new SluiceError("too-many", `${what} Try again in ${minutes} min.`, { retryAfterSeconds });
}

/** Takes one back: it was right, and says nothing of the others. */
export async function uncountOne(ctx: Context, key: Counted): Promise<void> {
  const [left] = await ctx.db
    .update(signInFailures)
    .set({ count: sql`${signInFailures.count} - 1` })
    .where(eq(signInFailures.key, key))
    .returning({ count: signInFailures.count });
  if (left === undefined || left.count > 0) return;
  await ctx.db.delete(signInFailures).where(and(eq(signInFailures.key, key), lte(signInFailures.count, 0)));
}

/** Forgets what was counted: it was right. */
export async function forget(ctx: Context, keys: readonly Counted[]): Promise<void> {
  await ctx.db.delete(signInFailures).where(inArray(signInFailures.key, [...keys]));
}

/** Removes counts that no longer matter and, of too many, the smallest: those near a limit stay. */
export async function sweepAttempts(ctx: Context): Promise<void> {
  const begin = new Date(ctx.now().getTime() - WINDOW_MS);
  // A count that somebody changes now stays: two sweeps at once do not wait for each other.
  await ctx.db.execute(sql`
    delete from ${signInFailures} where key in (
      select key from ${signInFailures} where since < ${begin.toISOString()}::timestamptz for update skip locked)`);
  await ctx.db.execute(sql`
    delete from ${signInFailures} where key in (
      select key from ${signInFailures} order by count desc, since desc offset ${MOST_COUNTS} for update skip locked)`);
}
