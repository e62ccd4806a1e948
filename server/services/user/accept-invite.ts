import { peekCode, useCode } from "#server/auth/one-time-code.ts";
import { hashPassword } from "#server/auth/password.ts";
import { countAddress, uncountAddress } from "#server/auth/sign-in-limit.ts";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import { type AcceptInviteInput, type AcceptInviteOutput, acceptInviteInput } from "#server/contracts/user.ts";
import { users } from "#server/db/schema/index.ts";
import { isUniqueViolation, SluiceError } from "#server/errors.ts";
import { newId } from "#server/ids.ts";
import { parse } from "#server/parse.ts";
import { joinInvited } from "./join-invited.ts";

export const inviteNotValid = (): SluiceError =>
  new SluiceError("not-found", "This invitation was used already or is too old. Ask for a new link.");

/** Makes the account that an invitation is for, in its team. */
export async function acceptInvite(ctx: Context, raw: AcceptInviteInput): Promise<AcceptInviteOutput> {
  authorize(ctx.principal, "user.accept-invite");
  const input = parse(acceptInviteInput, raw);
  const address = ctx.address ?? "unknown";
  await countAddress(ctx, address);
  // Looked at before the password is hashed, so that strangers cannot keep the processor busy.
  if ((await peekCode(ctx, "invite", input.code)) === undefined) throw inviteNotValid();
  const passwordHash = await hashPassword(input.password);
  try {
    return await inTransaction(ctx, async (tx) => {
      const code = await useCode(tx, "invite", input.code);
      if (code === undefined || code.email === null || code.teamId === null) {
        throw inviteNotValid();
      }
      const userId = newId("usr");
      const person = { name: input.name, email: code.email };
      await tx.db.insert(users).values({ id: userId, ...person, passwordHash, createdAt: tx.now() });
      // Only this invitation: the link does not prove that the e-mail is this person's.
      await joinInvited(tx, { userId, ...person, isAdmin: false }, code);
      await uncountAddress(tx, address);
      return { userId, email: code.email };
    });
  } catch (error) {
    if (isUniqueViolation(error))
      throw new SluiceError("conflict", "This e-mail has an account already. Sign in, then open this link again.");
    throw error;
  }
}
