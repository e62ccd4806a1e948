import { and, eq, isNull } from "drizzle-orm";
import { useCode } from "#server/auth/one-time-code.ts";
import { hashPassword } from "#server/auth/password.ts";
import { countAddress, forgiveAttempts } from "#server/auth/sign-in-limit.ts";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import {
  type RedeemPasswordLinkInput,
  type RedeemPasswordLinkOutput,
  redeemPasswordLinkInput,
} from "#server/contracts/user.ts";
import { users } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";
import { passwordSet } from "#server/services/notice/words.ts";
import { writeNotices } from "#server/services/notice/write.ts";
import { endPasswordLinks, endSessionsOf, endTokens } from "#server/services/session/end-ways-in.ts";
import { linkNotValid, personOfLink } from "./read-password-link.ts";

/**
 * Gives the person whom a link is for a new password, and ends their browser sessions everywhere. Access tokens are
 * credentials of their own, which scripts run on: they stay unless the person says that they should not.
 */
export async function redeemPasswordLink(
  ctx: Context,
  raw: RedeemPasswordLinkInput,
): Promise<RedeemPasswordLinkOutput> {
  authorize(ctx.principal, "user.redeem-password-link");
  const input = parse(redeemPasswordLinkInput, raw);
  const address = ctx.address ?? "unknown";
  await countAddress(ctx, address);
  // Looked at before the password is hashed, so that strangers cannot keep the processor busy.
  const { id } = await personOfLink(ctx, input.code);
  const passwordHash = await hashPassword(input.password);
  return await inTransaction(ctx, async (tx) => {
    // The person first, as whoever makes a link or closes the account does.
    const [row] = await tx.db
      .select()
      .from(users)
      .where(and(eq(users.id, id), isNull(users.disabledAt)))
      .for("no key update");
    if (row === undefined) throw linkNotValid();
    if ((await useCode(tx, "password", input.code)) === undefined) throw linkNotValid();
    // Also clears the link to the provider: an account has one way to sign in. A newer link to the provider would have
    // ended this password link.
    await tx.db.update(users).set({ passwordHash, oidcSubject: null }).where(eq(users.id, id));
    await endPasswordLinks(tx, id);
    await endSessionsOf(tx, id);
    if (input.revokeTokens) await endTokens(tx, id);
    const { email, name, isAdmin, oidcSubject } = row;
    // They may have tried the old one too often.
    await forgiveAttempts(tx, { email, address });
    await audit(
      { ...tx, principal: { kind: "user", userId: id, email, name, isAdmin, teams: {} } },
      {
        action: "user.redeem-password-link",
        subject: id,
        detail: { revokedTokens: input.revokeTokens, ...(oidcSubject !== null && { before: { oidcSubject } }) },
      },
    );
    await writeNotices(tx, [passwordSet(id, tx.now(), "link", tx.address)]);
    return { email };
  });
}
