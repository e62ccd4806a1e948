import { eq, sql } from "drizzle-orm";
import { peekCode, useCode } from "#server/auth/one-time-code.ts";
import { hashPassword } from "#server/auth/password.ts";
import { countAddress } from "#server/auth/sign-in-limit.ts";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type CompleteSetupInput, type CompleteSetupOutput, completeSetupInput } from "#server/contracts/setup.ts";
import type { Transaction } from "#server/db/client.ts";
import { memberships, quotas, teams, users } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { newId } from "#server/ids.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";

/** The first team's quota for the software GPU: half of one always, all of it when nobody else wants it. */
const DEMO_QUOTA = { gpuType: "soft", guaranteedMilli: 500, limitMilli: 1000 };

/** The one form of a new installation, allowed by the one-time code of the set-up link. */
export async function complete(ctx: Context, raw: CompleteSetupInput): Promise<CompleteSetupOutput> {
  authorize(ctx.principal, "setup.complete");
  const input = parse(completeSetupInput, raw);
  // Looked at before the password is hashed, so that strangers cannot keep the processor busy.
  if (await hasAdmin(ctx.db)) throw alreadyDone();
  await countAddress(ctx, ctx.address ?? "unknown");
  if ((await peekCode(ctx, "setup", input.code)) === undefined) {
    // Another attempt may have used the code and made the admin between the two reads.
    throw (await hasAdmin(ctx.db)) ? alreadyDone() : notValid();
  }
  const passwordHash = await hashPassword(input.password);
  return await inTransaction(ctx, async (tx) => {
    await lockSetup(tx.db);
    if (await hasAdmin(tx.db)) throw alreadyDone();
    if ((await useCode(tx, "setup", input.code)) === undefined) throw notValid();
    return await makeFirstAdmin(tx, { name: input.name, email: input.email, passwordHash }, "set-up link");
  });
}

const alreadyDone = () => new SluiceError("conflict", "Sluice is set up already. Sign in.");
const notValid = () =>
  new SluiceError("forbidden", "This set-up link is not valid any more. `npm start` prints a new one.");

/** Set-up happens once, however many try at the same time. */
export async function lockSetup(db: Transaction): Promise<void> {
  await db.execute(sql`select pg_advisory_xact_lock(7411003)`);
}

export async function hasAdmin(db: Context["db"]): Promise<boolean> {
  const [admin] = await db.select({ id: users.id }).from(users).where(eq(users.isAdmin, true)).limit(1);
  return admin !== undefined;
}

/** The first admin, the team "demo" with its quota, and the admin as its lead. */
export async function makeFirstAdmin(
  tx: Context,
  person: { name: string; email: string; passwordHash: string },
  by: string,
): Promise<CompleteSetupOutput> {
  const now = tx.now();
  const userId = newId("usr");
  const teamId = newId("team");
  await tx.db.insert(users).values({ id: userId, ...person, isAdmin: true, createdAt: now });
  await tx.db.insert(teams).values({ id: teamId, name: "demo", createdAt: now });
  await tx.db.insert(memberships).values({ teamId, userId, role: "lead", createdAt: now });
  await tx.db.insert(quotas).values({ teamId, ...DEMO_QUOTA });
  const acting: Context = {
    ...tx,
    principal: { kind: "user", userId, email: person.email, name: person.name, isAdmin: true, teams: {} },
  };
  await audit(acting, { action: "setup.complete", subject: userId, teamId, detail: { by } });
  await audit(acting, { action: "team.set-quota", subject: teamId, teamId, detail: DEMO_QUOTA });
  await notify(tx.db, "setup", "admin");
  return { userId, teamId };
}
