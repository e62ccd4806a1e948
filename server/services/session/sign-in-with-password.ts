import { and, eq, isNull } from "drizzle-orm";
import { sweepAttempts } from "#server/auth/attempts.ts";
import { verifyPassword } from "#server/auth/password.ts";
import { countAttempt, forgiveAttempts } from "#server/auth/sign-in-limit.ts";
import { audit, authorize, type Context } from "#server/context.ts";
import { type SignInInput, signInInput } from "#server/contracts/session.ts";
import { users } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";

export type SignedIn = { userId: string; email: string; name: string };

/** The person of an e-mail and a password. What is wrong with them is not told, and it takes as long either way. */
export async function signInWithPassword(ctx: Context, raw: SignInInput): Promise<SignedIn> {
  authorize(ctx.principal, "session.create");
  const input = parse(signInInput, raw);
  await sweepAttempts(ctx);
  await countAttempt(ctx, input);
  const [user] = await ctx.db
    .select()
    .from(users)
    .where(and(eq(users.email, input.email), isNull(users.disabledAt)));
  if (!(await verifyPassword(user?.passwordHash ?? null, input.password)) || user === undefined) {
    // Only what concerns somebody: strangers cannot fill the audit with names that nobody has.
    if (user !== undefined) {
      await audit({ ...ctx, address: input.address }, { action: "session.refuse", subject: user.id });
    }
    throw new SluiceError("unauthenticated", "Wrong e-mail or password.");
  }
  await forgiveAttempts(ctx, input);
  return { userId: user.id, email: user.email, name: user.name };
}
