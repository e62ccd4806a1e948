/**
 * Slows down guessing: five wrong passwords from one address, or twenty from anywhere, for one e-mail in a quarter of an
 * hour, and sixty from one address whatever the e-mail. An address from which this person signed in lately has only the
 * first limit: strangers who guess cannot lock people out of where they work.
 */
import { and, eq, gt, sql } from "drizzle-orm";
import { allowAttempt, type Counted, counted, countOne, forget, uncountOne } from "#server/auth/attempts.ts";
import type { Context } from "#server/context.ts";
import { auditEvents, users } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";

const LIMITS = { fromAddress: 5, fromAnywhere: 20, ofAddress: 60 };

const KNOWN_MS = 30 * 86_400_000;

type Attempt = { email: string; address: string };

function keysOf({ email, address }: Attempt): { key: Counted; limit: number }[] {
  return [
    { key: counted("address", email, address), limit: LIMITS.fromAddress },
    { key: counted("email", email), limit: LIMITS.fromAnywhere },
  ];
}

/**
 * Counts an attempt before the password is looked at, so that many at once cannot slip through, and refuses it when
 * there were too many. A right password takes the count back (`forgiveAttempts`).
 */
export async function countAttempt(ctx: Context, attempt: Attempt): Promise<void> {
  let allowed = true;
  const keys = keysOf(attempt);
  const known = await isKnown(ctx, attempt);
  // Counted for those who are known too, as the right password takes one back.
  const ofTheirs = countAddress(ctx, attempt.address);
  await (known ? ofTheirs.catch(ignoreTooMany) : ofTheirs);
  for (const { key, limit } of known ? keys.slice(0, 1) : keys) {
    if ((await countOne(ctx, key)).count > limit) allowed = false;
  }
  if (!allowed) throw new SluiceError("refused", "Too many wrong passwords. Wait a quarter of an hour and try again.");
}

function ignoreTooMany(error: unknown): void {
  if (!(error instanceof SluiceError) || error.code !== "too-many") throw error;
}

const ofAddress = (address: string) => counted("password-from", address);

/**
 * Counts what makes this process hash a password, by the client's address alone: sign-in, and the links that set a
 * password. Throws `too-many` beyond the limit. What comes of it takes its own count back (`uncountAddress`).
 */
export async function countAddress(ctx: Context, address: string): Promise<void> {
  await allowAttempt(ctx, ofAddress(address), LIMITS.ofAddress, "Too many attempts came from your network address.");
}

export async function uncountAddress(ctx: Context, address: string): Promise<void> {
  await uncountOne(ctx, ofAddress(address));
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

/** Forgets what was counted, after the right password or a new one. */
export async function forgiveAttempts(ctx: Context, attempt: Attempt): Promise<void> {
  await uncountAddress(ctx, attempt.address);
  await forget(
    ctx,
    keysOf(attempt).map(({ key }) => key),
  );
}
