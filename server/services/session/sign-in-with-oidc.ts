import { and, eq, isNull } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type OidcIdentity, oidcIdentity } from "#server/contracts/session.ts";
import { users } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { endWaysIn } from "#server/services/session/end-ways-in.ts";
import type { SignedIn } from "#server/services/session/sign-in-with-password.ts";

/**
 * The person whom the OIDC provider vouches for. The first time they are found by the e-mail, which counts only when
 * the provider says that it is verified; from then on by the provider's own subject, whatever happens to the e-mail.
 * The link ends every other way into the account: nobody had proved before that the e-mail was theirs.
 */
export async function signInWithOidc(ctx: Context, raw: OidcIdentity): Promise<SignedIn> {
  authorize(ctx.principal, "session.create");
  const identity = parse(oidcIdentity, raw);
  const oidcSubject = `${identity.issuer}|${identity.subject}`;
  return await inTransaction(ctx, async (tx) => {
    const [known] = await tx.db
      .select()
      .from(users)
      .where(and(eq(users.oidcSubject, oidcSubject), isNull(users.disabledAt)));
    if (known !== undefined) return { userId: known.id, email: known.email, name: known.name };
    const email = identity.emailVerified ? identity.email : undefined;
    const [linked] =
      email === undefined
        ? []
        : await tx.db
            .update(users)
            .set({ oidcSubject, passwordHash: null })
            .where(
              and(
                eq(users.email, email),
                isNull(users.oidcSubject),
                isNull(users.disabledAt),
                eq(users.isSample, false),
              ),
            )
            .returning();
    if (linked === undefined) {
      throw new SluiceError("forbidden", "You have no account here. Ask an admin for an invitation.");
    }
    await endWaysIn(tx, linked.id);
    await audit(tx, { action: "user.link-oidc", subject: linked.id, detail: { issuer: identity.issuer } });
    return { userId: linked.id, email: linked.email, name: linked.name };
  });
}
