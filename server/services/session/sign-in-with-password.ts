import { and, eq, isNull } from "drizzle-orm";
import { verifyPassword } from "#server/auth/password.ts";
import { countAttempt, forgiveAttempts } from "#server/auth/sign-in-limit.ts";
import { audit, authorize, type Context } from "#server/context.ts";
import { type SignInInput, signInInput } from "#server/contracts/session.ts";
import { users } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { networkOf } from "#server/http/client-address.ts";
import { parse } from "#server/parse.ts";

export type SignedIn = { userId: string; email: string; name: string };

/** The person of an e-mail and a password. What is wrong with them is not told, and it takes as long either way. */
export async function signInWithPassword(ctx: Context, raw: SignInInput): Promise<SignedIn> {
  authorize(ctx.principal, "session.create");
  const input = parse(signInInput, raw);
  const { isKnown } = await countAttempt(ctx, input);
  const strangersNetwork = isKnown ? undefined : networkOf(input.address);
  const [user] = await ctx.db
    .select()
    .from(users)
    .where(and(eq(users.email, input.email), isNull(users.disabledAt)));
  const isRight = await verifyPassword(user?.passwordHash ?? null, input.password, strangersNetwork);
  if (!isRight || user === undefined) {
    // Only what concerns somebody: strangers cannot fill the audit with names that nobody has.
    if (user !== undefined) {
      await audit({ ...ctx, address: input.address }, { action: "session.refuse", subject: user.id });
    }
    throw new SluiceError("unauthenticated", "Wrong e-mail or password.");
  }
  await forgiveAttempts(ctx, input);
  return { userId: user.id, email: user.email, name: user.name };
}
