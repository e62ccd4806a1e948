import { and, eq, isNull, ne } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import type { Transaction } from "#server/db/client.ts";
import { users } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import type { UserRow } from "./view.ts";

/** The account, kept as it is until the transaction ends. Nobody changes the own one: a slip could not be undone. */
export async function lockOther(tx: Context & { db: Transaction }, id: string, deed: string): Promise<UserRow> {
  // Admins first and in one order: two that take each other's rights wait here, and the second finds none left.
  await tx.db.select({ id: users.id }).from(users).where(eq(users.isAdmin, true)).orderBy(users.id).for("update");
  const [row] = await tx.db.select().from(users).where(eq(users.id, id)).for("update");
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
