/**
 * Slows down guessing: five wrong passwords from one network, or twenty from anywhere, for one e-mail in a quarter of an
 * hour, and sixty from one network whatever the e-mail. A network from which this person signed in lately has only the
 * first limit: strangers who guess cannot lock people out of where they work. A network is an IPv4 address or an IPv6
 * /64 (`networkOf`).
 */
import { and, desc, eq, gt, max, sql } from "drizzle-orm";
import { allowAttempt, type Counted, counted, countOne, forget, uncountOne } from "#server/auth/attempts.ts";
import type { Context } from "#server/context.ts";
import { auditEvents, users } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { networkOf } from "#server/http/client-address.ts";

const LIMITS = { fromNetwork: 5, fromAnywhere: 20, ofNetwork: 60 };

const KNOWN_MS = 30 * 86_400_000;
/** Maximum addresses of one person that are compared, the latest first. */
const MOST_ADDRESSES = 500;

type Attempt = { email: string; address: string };

function keysOf({ email, address }: Attempt): { key: Counted; limit: number }[] {
  return [
    { key: counted("address", email, networkOf(address)), limit: LIMITS.fromNetwork },
    { key: counted("email", email), limit: LIMITS.fromAnywhere },
  ];
}

/**
 * Counts an attempt before the password is looked at, so that many at once cannot slip through, and refuses it when
 * there were too many. A right password takes the count back (`forgiveAttempts`). Tells whether this person signed in
 * from this network lately.
 */
export async function countAttempt(ctx: Context, attempt: Attempt): Promise<{ isKnown: boolean }> {
  let allowed = true;
  const keys = keysOf(attempt);
  const known = await isKnownThere(ctx, attempt);
  // Counted for those who are known too, as the right password takes one back.
  const ofTheirs = countAddress(ctx, attempt.address);
  await (known ? ofTheirs.catch(ignoreTooMany) : ofTheirs);
  for (const { key, limit } of known ? keys.slice(0, 1) : keys) {
    if ((await countOne(ctx, key)).count > limit) allowed = false;
  }
  if (!allowed) throw new SluiceError("refused", "Too many wrong passwords. Wait a quarter of an hour and try again.");
  return { isKnown: known };
}

function ignoreTooMany(error: unknown): void {
  if (!(error instanceof SluiceError) || error.code !== "too-many") throw error;
}

const ofNetwork = (address: string) => counted("password-from", networkOf(address));

/**
 * Counts what makes this process hash a password, by the client's network alone: sign-in, and the links that set a
 * password. Throws `too-many` beyond the limit. What comes of it takes its own count back (`uncountAddress`).
 */
export async function countAddress(ctx: Context, address: string): Promise<void> {
  await allowAttempt(ctx, ofNetwork(address), LIMITS.ofNetwork, "Too many attempts came from your network address.");
}

export async function uncountAddress(ctx: Context, address: string): Promise<void> {
  await uncountOne(ctx, ofNetwork(address));
}

/** Whether a session of this person began in this network. */
async function isKnownThere(ctx: Context, { email, address }: Attempt): Promise<boolean> {
  // Entries of older versions have it among the particulars.
  const from = sql<string | null>`coalesce(${auditEvents.address}, ${auditEvents.detail} ->> 'address')`;
  const rows = await ctx.db
    .select({ from })
    .from(users)
    .innerJoin(auditEvents, eq(auditEvents.subject, users.id))
    .where(
      and(
        eq(users.email, email),
        eq(auditEvents.action, "session.create"),
        gt(auditEvents.at, new Date(ctx.now().getTime() - KNOWN_MS)),
      ),
    )
    .groupBy(from)
    .orderBy(desc(max(auditEvents.at)))
    .limit(MOST_ADDRESSES);
  const network = networkOf(address);
  return rows.some((row) => row.from !== null && networkOf(row.from) === network);
}

/** Forgets what was counted, after the right password or a new one. */
export async function forgiveAttempts(ctx: Context, attempt: Attempt): Promise<void> {
  await uncountAddress(ctx, attempt.address);
  await forget(
    ctx,
    keysOf(attempt).map(({ key }) => key),
  );
}
