import { and, eq, isNull } from "drizzle-orm";
import type { z } from "zod";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { personName } from "#server/contracts/common.ts";
import { type OidcIdentity, oidcIdentity } from "#server/contracts/session.ts";
import { users } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { newId } from "#server/ids.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { applyGroups, givenBy } from "#server/services/identity-group/apply.ts";
import { endWaysIn } from "#server/services/session/end-ways-in.ts";
import type { SignedIn } from "#server/services/session/sign-in-with-password.ts";

/**
 * The person whom the OIDC provider vouches for. The first time they are found by the e-mail, which counts only when
 * the provider says that it is verified; from then on by the provider's own subject, whatever happens to the e-mail.
 * The link ends every other way into the account: nobody had proved before that the e-mail was theirs. Whoever has no
 * account gets one where a group of theirs gives something here. What their groups give counts from each sign-in.
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
    const person = known ?? (await link(tx, identity, oidcSubject)) ?? (await make(tx, identity, oidcSubject));
    if (person === undefined) {
      throw new SluiceError("forbidden", "You have no account here. Ask an admin for an invitation.");
    }
    await applyGroups(tx, person.id, identity.groups);
    return { userId: person.id, email: person.email, name: person.name };
  });
}

type Identity = z.output<typeof oidcIdentity>;
type User = typeof users.$inferSelect;
type Tx = Parameters<typeof applyGroups>[0];

/** The account that is there with this e-mail and belongs to nobody at the provider yet. */
async function link(tx: Tx, identity: Identity, oidcSubject: string): Promise<User | undefined> {
  if (!identity.emailVerified || identity.email === undefined) return undefined;
  const free = and(isNull(users.oidcSubject), isNull(users.disabledAt), eq(users.isSample, false));
  const [linked] = await tx.db
    .update(users)
    .set({ oidcSubject, passwordHash: null })
    .where(and(eq(users.email, identity.email), free))
    .returning();
  if (linked === undefined) return undefined;
  await endWaysIn(tx, linked.id);
  await audit(tx, { action: "user.link-oidc", subject: linked.id, detail: { issuer: identity.issuer } });
  return linked;
}

/** A new account for whoever is in a group that gives something here. */
async function make(tx: Tx, identity: Identity, oidcSubject: string): Promise<User | undefined> {
  const { issuer, email, emailVerified, groups = [] } = identity;
  if (!emailVerified || email === undefined || (await givenBy(tx, groups)).length === 0) return undefined;
  const [made] = await tx.db
    .insert(users)
    .values({ id: newId("usr"), email, name: nameOf(identity.name, email), oidcSubject, createdAt: tx.now() })
    .onConflictDoNothing()
    .returning();
  if (made === undefined) return undefined;
  await audit(tx, { action: "user.create-by-group", subject: made.id, detail: { issuer, email, name: made.name } });
  await notify(tx.db, "people", made.id);
  return made;
}

function nameOf(given: string | undefined, email: string): string {
  const name = personName.safeParse(given?.slice(0, 100));
  return name.success ? name.data : (email.split("@")[0] ?? email).slice(0, 100);
}
