/**
 * Slows down guessing: five wrong passwords from one address, or twenty from anywhere, for one e-mail in a quarter of an
 * hour. An address from which this person signed in lately has only the first limit: strangers who guess cannot lock
 * people out of where they work.
 */
import { and, eq, gt, inArray, sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { auditEvents, signInFailures, users } from "#server/db/schema/index.ts";
import { hashSecret } from "#server/ids.ts";

const WINDOW_MS = 15 * 60_000;
const LIMITS = { fromAddress: 5, fromAnywhere: 20 };

const KNOWN_MS = 30 * 86_400_000;

type Attempt = { email: string; address: string };

function keysOf({ email, address }: Attempt): { key: string; limit: number }[] {
  return [
    { key: hashSecret(`address ${email} ${address}`), limit: LIMITS.fromAddress },
    { key: hashSecret(`email ${email}`), limit: LIMITS.fromAnywhere },
  ];
}

/**
 * Counts an attempt before the password is looked at, so that many at once cannot slip through; false when there
 * were too many. A right password takes the count back (`forgiveAttempts`).
 */
export async function countAttempt(ctx: Context, attempt: Attempt): Promise<boolean> {
  const now = ctx.now();
  const begin = new Date(now.getTime() - WINDOW_MS);
  let allowed = true;
  const keys = keysOf(attempt);
  for (const { key, limit } of (await isKnown(ctx, attempt)) ? keys.slice(0, 1) : keys) {
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
      .returning({ count: signInFailures.count });
    if ((row?.count ?? 1) > limit) allowed = false;
  }
  return allowed;
}

/** Whether a session of this person began at this address. */
async function isKnown(ctx: Context, { email, address }: Attempt): Promise<boolean> {
  const [row] = await ctx.db
    .select({ seq: auditEvents.seq })
    .from(users)
    .innerJoin(auditEvents, eq(auditEvents.subject, users.id))
    .where(
      and(
        eq(users.email, email),
        eq(auditEvents.action, "session.create"),
        // Entries of older versions have it among the particulars.
        sql`coalesce(${auditEvents.address}, ${auditEvents.detail} ->> 'address') = ${address}`,
        gt(auditEvents.at, new Date(ctx.now().getTime() - KNOWN_MS)),
      ),
    )
    .limit(1);
  return row !== undefined;
}

/** Forgets what was counted, after the right password. */
export async function forgiveAttempts(ctx: Context, attempt: Attempt): Promise<void> {
  const keys = keysOf(attempt).map(({ key }) => key);
  await ctx.db.delete(signInFailures).where(inArray(signInFailures.key, keys));
}

/** Removes counts that no longer matter. */
export async function sweepAttempts(ctx: Context): Promise<void> {
  const begin = new Date(ctx.now().getTime() - WINDOW_MS);
  await ctx.db.delete(signInFailures).where(sql`${signInFailures.since} < ${begin.toISOString()}::timestamptz`);
}
