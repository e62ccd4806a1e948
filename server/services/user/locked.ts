import { and, eq, isNull, ne } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import type { Transaction } from "#server/db/client.ts";
import { users } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import type { UserRow } from "./view.ts";

/**
 * The account, kept as it is until the transaction ends, in the strength that does not stop the lease API from writing
 * rows that refer to it. Nobody changes the own one: a slip could not be undone.
 */
export async function lockOther(tx: Context & { db: Transaction }, id: string, deed: string): Promise<UserRow> {
  // Admins first and in one order: two that take each other's rights wait here, and the second finds none left.
  await tx.db
    .select({ id: users.id })
    .from(users)
    .where(eq(users.isAdmin, true))
    .orderBy(users.id)
    .for("no key update");
  const [row] = await tx.db.select().from(users).where(eq(users.id, id)).for("no key update");
  if (row === undefined) throw new SluiceError("not-found", "There is no such person.");
  if (tx.principal.kind === "user" && tx.principal.userId === id) {
    throw new SluiceError("conflict", `You cannot ${deed}. Ask another admin.`);
  }
  return row;
}

/** Refuses what would leave nobody who can change anything here. */
export async function refuseWithoutAdmin(tx: Context, id: string): Promise<void> {
  const others = and(eq(users.isAdmin, true), isNull(users.disabledAt), ne(users.id, id));
  if ((await tx.db.$count(users, others)) > 0) return;
  throw new SluiceError("conflict", "This is the only admin. Make somebody else an admin first.");
}

/** Refuses to run anything for an account that is closed; one that is being closed is waited for. */
export async function refuseDeactivated(tx: Context & { db: Transaction }, id: string): Promise<void> {
  const [row] = await tx.db.select({ disabledAt: users.disabledAt }).from(users).where(eq(users.id, id)).for("share");
  if (row?.disabledAt === null) return;
  throw new SluiceError("conflict", "This account is deactivated. Ask an admin to reactivate it first.");
}
