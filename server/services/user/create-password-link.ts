import { allowAttempt, counted } from "#server/auth/attempts.ts";
import { createCode } from "#server/auth/one-time-code.ts";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type PasswordLink, type UserInput, userInput } from "#server/contracts/user.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { endPasswordLinks } from "#server/services/session/end-ways-in.ts";
import { lockOther } from "./locked.ts";
import { isByProvider } from "./view.ts";

/** Long enough to be handed over by another way, short enough not to lie about. */
const LINK_SECONDS = 24 * 3600;

/** Maximum links for one person in a quarter of an hour. */
const LINKS = 5;

/**
 * Makes a link for choosing a new password. It replaces an earlier link. Accounts that sign in through the provider get
 * one on the machine only (SLUICE_PASSWORD_LINK_FOR); its use removes the link to the provider. Until the link is used,
 * the old password and all sessions stay valid.
 */
export async function createPasswordLink(ctx: Context, raw: UserInput): Promise<PasswordLink> {
  const { id } = parse(userInput, raw);
  authorize(ctx.principal, "user.create-password-link");
  await allowAttempt(ctx, counted("password-link", id), LINKS, "Many links were made for this person just now.");
  return await inTransaction(ctx, async (tx) => {
    const row = await lockOther(tx, id, "make a link for your own password");
    if (row.isSample) throw new SluiceError("conflict", "The sample user has no password: open it instead.");
    if (row.disabledAt !== null) {
      throw new SluiceError("conflict", "This account is deactivated. Reactivate it first, then make the link.");
    }
    // The system principal is a start with SLUICE_PASSWORD_LINK_FOR, for when no admin can sign in.
    if (isByProvider(row) && tx.principal.kind !== "system") {
      const provider = env().SLUICE_OIDC_NAME;
      throw new SluiceError(
        "conflict",
        `${row.name} signs in with ${provider} and has no password here. Reset the password at ${provider}. If ${provider} knows this person by a new subject, choose Remove link. If no admin can sign in, start with SLUICE_PASSWORD_LINK_FOR=${row.email}.`,
      );
    }
    await endPasswordLinks(tx, id);
    const { code, expiresAt } = await createCode(tx, "password", LINK_SECONDS, { userId: id });
    await audit(tx, {
      action: "user.create-password-link",
      subject: id,
      detail: { expiresAt: expiresAt.toISOString() },
    });
    return { link: `${env().SLUICE_PORTAL_URL}/password/${code}`, expiresAt: expiresAt.toISOString() };
  });
}
