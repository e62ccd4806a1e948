import { and, eq, isNull } from "drizzle-orm";
import type { UserPrincipal } from "#server/auth/principal.ts";
import type { Database, Transaction } from "#server/db/client.ts";
import { memberships, users } from "#server/db/schema/index.ts";

/** The person with teams and roles as they are now; undefined when unknown or disabled. */
export async function loadUser(db: Database | Transaction, userId: string): Promise<UserPrincipal | undefined> {
  const rows = await db
    .select({
      email: users.email,
      name: users.name,
      isAdmin: users.isAdmin,
      teamId: memberships.teamId,
      role: memberships.role,
    })
    .from(users)
    .leftJoin(memberships, eq(memberships.userId, users.id))
    .where(and(eq(users.id, userId), isNull(users.disabledAt)));
  const [first] = rows;
  if (first === undefined) return undefined;
  const teams: UserPrincipal["teams"] = {};
  for (const row of rows) if (row.teamId !== null && row.role !== null) teams[row.teamId] = row.role;
  return { kind: "user", userId, email: first.email, name: first.name, isAdmin: first.isAdmin, teams };
}
