import { eq } from "drizzle-orm";
import { createCode } from "#server/auth/one-time-code.ts";
import { hashPassword } from "#server/auth/password.ts";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import { email, password } from "#server/contracts/common.ts";
import type { PasswordLink } from "#server/contracts/user.ts";
import { users } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { definitionFolders, register } from "#server/services/image/register.ts";
import { sweep } from "#server/services/session/sweep.ts";
import { hasAdmin, lockSetup, makeFirstAdmin } from "#server/services/setup/complete.ts";
import { createPasswordLink } from "#server/services/user/create-password-link.ts";

const SETUP_LINK_SECONDS = 24 * 3600;

export type Prepared =
  /** There is an admin; `made` when it was just made from SLUICE_ADMIN_EMAIL and SLUICE_ADMIN_PASSWORD. */
  | { state: "done"; made: boolean; passwordLink?: PasswordLink }
  /** The link to print. A new one at each start; older ones go on working until one is used. */
  | { state: "link"; link: string; expiresAt: string };

/** For whoever has the machine and no other admin to ask. */
async function passwordLinkAsked(ctx: Context): Promise<{ passwordLink?: PasswordLink }> {
  const { SLUICE_PASSWORD_LINK_FOR: asked } = env();
  if (asked === undefined) return {};
  const address = parse(email, asked);
  const [person] = await ctx.db.select({ id: users.id }).from(users).where(eq(users.email, address));
  if (person === undefined) {
    throw new SluiceError("invalid", `SLUICE_PASSWORD_LINK_FOR: nobody here has the e-mail ${address}.`);
  }
  return { passwordLink: await createPasswordLink(ctx, { id: person.id }) };
}

/** Called at each start, after the migrations: catalogue, and either the unattended admin or a set-up link. */
export async function prepare(ctx: Context): Promise<Prepared> {
  authorize(ctx.principal, "setup.prepare");
  await sweep(ctx);
  for (const folder of await definitionFolders()) await register(ctx, { folder });
  if (await hasAdmin(ctx.db)) return { state: "done", made: false, ...(await passwordLinkAsked(ctx)) };
  const { SLUICE_ADMIN_EMAIL, SLUICE_ADMIN_PASSWORD, SLUICE_PORTAL_URL } = env();
  if (SLUICE_ADMIN_EMAIL === undefined || SLUICE_ADMIN_PASSWORD === undefined) {
    if (SLUICE_ADMIN_EMAIL !== undefined || SLUICE_ADMIN_PASSWORD !== undefined) {
      throw new SluiceError("invalid", "SLUICE_ADMIN_EMAIL and SLUICE_ADMIN_PASSWORD are set together, or neither is.");
    }
    const { code, expiresAt } = await createCode(ctx, "setup", SETUP_LINK_SECONDS);
    return { state: "link", link: `${SLUICE_PORTAL_URL}/setup?code=${code}`, expiresAt: expiresAt.toISOString() };
  }
  const address = parse(email, SLUICE_ADMIN_EMAIL);
  const passwordHash = await hashPassword(parse(password, SLUICE_ADMIN_PASSWORD));
  const name = address.split("@")[0] ?? address;
  return await inTransaction(ctx, async (tx) => {
    await lockSetup(tx.db);
    if (await hasAdmin(tx.db)) return { state: "done", made: false };
    await makeFirstAdmin(tx, { name, email: address, passwordHash }, "SLUICE_ADMIN_EMAIL");
    return { state: "done", made: true };
  });
}
