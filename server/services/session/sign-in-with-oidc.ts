import { and, eq, isNull, notLike, or } from "drizzle-orm";
import type { z } from "zod";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { email as emailAddress, personName } from "#server/contracts/common.ts";
import { type OidcIdentity, oidcIdentity } from "#server/contracts/session.ts";
import { asLine } from "#server/contracts/typed-name.ts";
import { oneTimeCodes, users } from "#server/db/schema/index.ts";
import { newId } from "#server/ids.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { applyGroups, givenBy } from "#server/services/identity-group/apply.ts";
import { endWaysIn } from "#server/services/session/end-ways-in.ts";
import { SignInRefused } from "#server/services/session/sign-in-refused.ts";
import type { SignedIn } from "#server/services/session/sign-in-with-password.ts";
import { joinAllInvited, waitingFor } from "#server/services/user/join-invited.ts";

/**
 * Signs in the person of a provider's identity. The first sign-in finds the account by the verified e-mail, later ones
 * by the provider's subject, even if the e-mail changes. The link ends every other way into the account: the e-mail was
 * unproved before. Without an account, a group with access or an open invitation makes one. Teams and admin rights by
 * groups apply from each sign-in. Throws `SignInRefused` with the reason.
 */
export async function signInWithOidc(ctx: Context, raw: OidcIdentity): Promise<SignedIn> {
  authorize(ctx.principal, "session.create");
  const identity = parse(oidcIdentity, raw);
  const oidcSubject = `${identity.issuer}|${identity.subject}`;
  return await inTransaction(ctx, async (tx) => {
    const [known] = await tx.db.select().from(users).where(eq(users.oidcSubject, oidcSubject));
    if (known?.disabledAt != null) throw new SignInRefused("deactivated", known.id);
    const person = known ?? (await link(tx, identity, oidcSubject)) ?? (await make(tx, identity, oidcSubject));
    await applyGroups(tx, person.id, identity.groups);
    const { id: userId, email, name, isAdmin } = person;
    // Invitations need the e-mail that the provider has just proved. The account may have an older one.
    if (identity.emailVerified === true && emailAddress.safeParse(identity.email).data === email) {
      await joinAllInvited(tx, { userId, email, name, isAdmin });
    }
    return { userId, email, name };
  });
}

type Identity = z.output<typeof oidcIdentity>;
type User = typeof users.$inferSelect;
type Tx = Parameters<typeof applyGroups>[0];

/** The verified e-mail of an identity. */
function verifiedEmail({ email, emailVerified }: Identity): string {
  if (email === undefined || email === "") throw new SignInRefused("no-email");
  const address = emailAddress.safeParse(email);
  if (!address.success) throw new SignInRefused("email-malformed");
  if (emailVerified === undefined) throw new SignInRefused("email-not-said");
  if (!emailVerified) throw new SignInRefused("email-not-verified");
  return address.data;
}

/**
 * Links the account with this e-mail and returns it; undefined if there is none. A link to a provider that is no longer
 * configured is ignored.
 */
async function link(tx: Tx, identity: Identity, oidcSubject: string): Promise<User | undefined> {
  const email = verifiedEmail(identity);
  const { issuer } = identity;
  const unlinked = or(isNull(users.oidcSubject), notLike(users.oidcSubject, `${likeText(issuer)}|%`));
  const free = and(unlinked, isNull(users.disabledAt), eq(users.isSample, false));
  const [there] = await tx.db.select().from(users).where(eq(users.email, email)).for("no key update");
  if (there === undefined) return undefined;
  const [linked] = await tx.db
    .update(users)
    .set({ oidcSubject, passwordHash: null })
    .where(and(eq(users.id, there.id), free))
    .returning();
  if (linked === undefined) throw new SignInRefused(whyNot(there), there.id);
  await endWaysIn(tx, linked.id);
  const before = there.oidcSubject === null ? {} : { before: { issuer: there.oidcSubject.split("|")[0] } };
  await audit(tx, { action: "user.link-oidc", subject: linked.id, detail: { ...before, issuer } });
  return linked;
}

function whyNot({ disabledAt, isSample }: User) {
  if (disabledAt !== null) return "deactivated";
  return isSample ? "sample" : "other-subject";
}

const likeText = (text: string) => text.replace(/[\\%_]/g, "\\$&");

/** Makes an account for a person with an open invitation or in a group with access. */
async function make(tx: Tx, identity: Identity, oidcSubject: string): Promise<User> {
  const email = verifiedEmail(identity);
  const { issuer, groups = [] } = identity;
  const byGroup = (await givenBy(tx, groups)).length > 0;
  if (!byGroup && (await tx.db.$count(oneTimeCodes, waitingFor(tx, email))) === 0) throw new SignInRefused("no-access");
  const [made] = await tx.db
    .insert(users)
    .values({ id: newId("usr"), email, name: nameOf(identity.name, email), oidcSubject, createdAt: tx.now() })
    .onConflictDoNothing()
    .returning();
  // A concurrent request made an account with this e-mail or subject; the next sign-in finds it.
  if (made === undefined) throw new SignInRefused("no-access");
  const action = byGroup ? "user.create-by-group" : "user.create-by-invitation";
  await audit(tx, { action, subject: made.id, detail: { issuer, email, name: made.name } });
  await notify(tx.db, "people", made.id);
  return made;
}

function nameOf(given: string | undefined, email: string): string {
  const name = personName.safeParse(given === undefined ? undefined : asLine(given).slice(0, 100));
  return name.success ? name.data : (email.split("@")[0] ?? email).slice(0, 100);
}
