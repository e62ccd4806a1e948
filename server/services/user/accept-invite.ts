import { peekCode, useCode } from "#server/auth/one-time-code.ts";
import { hashPassword } from "#server/auth/password.ts";
import { countAddress, uncountAddress } from "#server/auth/sign-in-limit.ts";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type AcceptInviteInput, type AcceptInviteOutput, acceptInviteInput } from "#server/contracts/user.ts";
import { memberships, users } from "#server/db/schema/index.ts";
import { isUniqueViolation, SluiceError } from "#server/errors.ts";
import { newId } from "#server/ids.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";

const notValid = () =>
  new SluiceError("not-found", "This invitation was used already or is too old. Ask for a new link.");

/** Makes the account that an invitation is for, in its team. */
export async function acceptInvite(ctx: Context, raw: AcceptInviteInput): Promise<AcceptInviteOutput> {
  authorize(ctx.principal, "user.accept-invite");
  const input = parse(acceptInviteInput, raw);
  const address = ctx.address ?? "unknown";
  await countAddress(ctx, address);
  // Looked at before the password is hashed, so that strangers cannot keep the processor busy.
  if ((await peekCode(ctx, "invite", input.code)) === undefined) throw notValid();
  const passwordHash = await hashPassword(input.password);
  try {
    return await inTransaction(ctx, async (tx) => {
      const code = await useCode(tx, "invite", input.code);
      if (code === undefined || code.email === null || code.teamId === null) {
        throw notValid();
      }
      const userId = newId("usr");
      const person = { name: input.name, email: code.email };
      await tx.db.insert(users).values({ id: userId, ...person, passwordHash, createdAt: tx.now() });
      const role = code.role ?? "member";
      await tx.db.insert(memberships).values({ teamId: code.teamId, userId, role, createdAt: tx.now() });
      await audit(
        { ...tx, principal: { kind: "user", userId, ...person, isAdmin: false, teams: { [code.teamId]: role } } },
        { action: "user.accept-invite", subject: userId, teamId: code.teamId, detail: { role } },
      );
      await notify(tx.db, "people", userId);
      await uncountAddress(tx, address);
      return { userId, email: code.email };
    });
  } catch (error) {
    if (isUniqueViolation(error)) throw new SluiceError("conflict", "This e-mail has an account already. Sign in.");
    throw error;
  }
}
