import { eq } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { Me } from "#server/contracts/session.ts";
import { memberships, teams, users } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { hasPassword, isByProvider } from "#server/services/user/view.ts";

/** Who is signed in, with the names of their teams. */
export async function me(ctx: Context): Promise<Me> {
  authorize(ctx.principal, "session.read");
  if (ctx.principal.kind !== "user") throw new SluiceError("forbidden", "Only a person has a profile.");
  const [user] = await ctx.db.select().from(users).where(eq(users.id, ctx.principal.userId));
  if (user === undefined) throw new SluiceError("unauthenticated", "Sign in first.");
  const rows = await ctx.db
    .select({ id: teams.id, name: teams.name, role: memberships.role })
    .from(memberships)
    .innerJoin(teams, eq(teams.id, memberships.teamId))
    .where(eq(memberships.userId, user.id))
    .orderBy(teams.name);
  return {
    id: user.id,
    email: user.email,
    name: user.name,
    isAdmin: user.isAdmin,
    isSample: user.isSample,
    byProvider: isByProvider(user),
    hasPassword: hasPassword(user),
    teams: rows,
  };
}
