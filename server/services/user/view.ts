import { and, asc, count, eq, inArray } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import type { UserView } from "#server/contracts/user.ts";
import { memberships, teams, users, workspaces } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";

export type UserRow = typeof users.$inferSelect;

/** People as an admin sees them, in the order of the rows. */
export async function viewsOf(ctx: Context, rows: readonly UserRow[]): Promise<UserView[]> {
  const ids = rows.map(({ id }) => id);
  const [teamsOf, runningOf] = await Promise.all([readTeamsOf(ctx, ids), readRunningOf(ctx, ids)]);
  return rows.map(({ id, email, name, isAdmin, adminByGroup, isSample, oidcSubject, disabledAt, createdAt }) => ({
    ...{ id, email, name, isAdmin, adminByGroup, isSample, disabled: disabledAt !== null },
    byProvider: isByProvider({ oidcSubject }),
    running: runningOf.get(id) ?? 0,
    createdAt: createdAt.toISOString(),
    teams: teamsOf.get(id) ?? [],
  }));
}

/** Whether the identity provider vouches for them; a provider that is no longer set up vouches for nobody. */
export function isByProvider({ oidcSubject }: Pick<UserRow, "oidcSubject">): boolean {
  const { SLUICE_OIDC_ISSUER: issuer } = env();
  return issuer !== undefined && oidcSubject?.startsWith(`${issuer}|`) === true;
}

/** Whether they sign in with a password that is kept here. */
export function hasPassword(row: UserRow): row is UserRow & { passwordHash: string } {
  return row.passwordHash !== null && !isByProvider(row);
}

/** One of whom it is known that they are there. */
export async function viewOf(ctx: Context, id: string): Promise<UserView> {
  const [view] = await viewsOf(ctx, await ctx.db.select().from(users).where(eq(users.id, id)));
  if (view === undefined) throw new Error(`there is no person ${id}`);
  return view;
}

async function readTeamsOf(ctx: Context, userIds: string[]): Promise<Map<string, UserView["teams"]>> {
  const rows = await ctx.db
    .select({ userId: memberships.userId, id: teams.id, name: teams.name, role: memberships.role })
    .from(memberships)
    .innerJoin(teams, eq(teams.id, memberships.teamId))
    .where(inArray(memberships.userId, userIds))
    .orderBy(asc(teams.name));
  const found = new Map<string, UserView["teams"]>();
  for (const { userId, ...team } of rows) found.set(userId, [...(found.get(userId) ?? []), team]);
  return found;
}

async function readRunningOf(ctx: Context, userIds: string[]): Promise<Map<string, number>> {
  const rows = await ctx.db
    .select({ userId: workspaces.ownerId, running: count() })
    .from(workspaces)
    .where(and(inArray(workspaces.ownerId, userIds), eq(workspaces.desired, "running")))
    .groupBy(workspaces.ownerId);
  return new Map(rows.map(({ userId, running }) => [userId, running]));
}
