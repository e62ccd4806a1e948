import { asc, eq } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { type ListUsersInput, listUsersInput, type UserList, type UserView } from "#server/contracts/user.ts";
import { memberships, teams, users } from "#server/db/schema/index.ts";
import { pageOf } from "#server/page-of.ts";
import { parse } from "#server/parse.ts";

/** Everybody, with their teams, by name; or those whom words find, a page at a time. */
export async function list(ctx: Context, raw: ListUsersInput = {}): Promise<UserList> {
  authorize(ctx.principal, "user.list");
  const { limit = Number.POSITIVE_INFINITY, ...wanted } = parse(listUsersInput, raw);
  const rows = await ctx.db
    .select({ user: users, teamId: teams.id, teamName: teams.name, role: memberships.role })
    .from(users)
    .leftJoin(memberships, eq(memberships.userId, users.id))
    .leftJoin(teams, eq(teams.id, memberships.teamId))
    .orderBy(asc(users.name), asc(users.id), asc(teams.name));
  const views = new Map<string, UserView>();
  for (const { user, teamId, teamName, role } of rows) {
    const view = views.get(user.id) ?? {
      id: user.id,
      email: user.email,
      name: user.name,
      isAdmin: user.isAdmin,
      isSample: user.isSample,
      disabled: user.disabledAt !== null,
      createdAt: user.createdAt.toISOString(),
      teams: [],
    };
    if (teamId !== null && teamName !== null && role !== null) view.teams.push({ id: teamId, name: teamName, role });
    views.set(user.id, view);
  }
  const textOf = ({ name, email, teams: own, isAdmin }: UserView) =>
    [name, email, ...own.map((team) => team.name), isAdmin ? "admin" : ""].join(" ");
  const { rows: page, total, next } = pageOf([...views.values()], textOf, { ...wanted, limit });
  return { users: page, total, next };
}
