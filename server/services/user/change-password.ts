import { and, eq, isNull } from "drizzle-orm";
import { hashPassword, verifyPassword } from "#server/auth/password.ts";
import { countAttempt, forgiveAttempts } from "#server/auth/sign-in-limit.ts";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type ChangePasswordInput, type ChangePasswordOutput, changePasswordInput } from "#server/contracts/user.ts";
import { users } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { passwordSet } from "#server/services/notice/words.ts";
import { writeNotices } from "#server/services/notice/write.ts";
import { endPasswordLinks, endSessionsOf, endTokens } from "#server/services/session/end-ways-in.ts";
import { hasPassword, isByProvider, type UserRow } from "./view.ts";

/**
 * Changes one's own password, for whoever knows the current one: an open browser alone does not make its finder the
 * owner. Wrong ones are counted as at sign-in. The session that asks stays, all others end; access tokens are
 * credentials of their own and stay unless the person says that they should not.
 */
export async function changePassword(ctx: Context, raw: ChangePasswordInput): Promise<ChangePasswordOutput> {
  const { principal } = ctx;
  authorize(principal, "user.change-password");
  if (principal.kind !== "user") throw new SluiceError("forbidden", "Only a person has a password.");
  const input = parse(changePasswordInput, raw);
  const { userId: id, email, sessionId } = principal;
  const [row] = await ctx.db.select().from(users).where(eq(users.id, id));
  if (row === undefined) throw new SluiceError("unauthenticated", "Sign in first.");
  if (!hasPassword(row)) throw new SluiceError("conflict", whyNone(row));
  const attempt = { email, address: ctx.address ?? "unknown" };
  await countAttempt(ctx, attempt);
  if (!(await verifyPassword(row.passwordHash, input.currentPassword))) {
    await audit(ctx, { action: "user.refuse-password-change", subject: id });
    throw new SluiceError("invalid", "currentPassword: This is not your current password.");
  }
  await forgiveAttempts(ctx, attempt);
  if (input.password === input.currentPassword) {
    throw new SluiceError("invalid", "password: This is your current password. Choose another.");
  }
  const passwordHash = await hashPassword(input.password);
  return await inTransaction(ctx, async (tx) => {
    // Of two at once, the second had looked at a password that is no longer the current one.
    const asRead = and(eq(users.id, id), eq(users.passwordHash, row.passwordHash), isNull(users.disabledAt));
    const [changed] = await tx.db.update(users).set({ passwordHash }).where(asRead).returning({ id: users.id });
    if (changed === undefined) throw new SluiceError("conflict", "Your password was changed meanwhile. Try again.");
    await endPasswordLinks(tx, id);
    const endedSessions = await endSessionsOf(tx, id, sessionId);
    if (input.revokeTokens) await endTokens(tx, id);
    await audit(tx, {
      action: "user.change-password",
      subject: id,
      detail: { endedSessions, revokedTokens: input.revokeTokens },
    });
    await writeNotices(tx, [passwordSet(id, tx.now(), "change", tx.address)]);
    return { endedSessions };
  });
}

/** Why somebody has no password that could be changed here. */
function whyNone(row: UserRow): string {
  if (row.isSample) return "The sample user has no password: an admin opens it.";
  if (isByProvider(row))
    return `You sign in with ${env().SLUICE_OIDC_NAME} and have no password here. Change it there.`;
  return "You have no password here. Ask an admin for a link to choose one.";
}
