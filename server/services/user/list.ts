import { and, asc, count, eq, exists, type SQL, sql } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { type ListUsersInput, listUsersInput, type UserList } from "#server/contracts/user.ts";
import { memberships, teams, users } from "#server/db/schema/index.ts";
import { hasWords } from "#server/db/search.ts";
import { refuseUnknownPlace } from "#server/page-of.ts";
import { parse } from "#server/parse.ts";
import { viewsOf } from "#server/services/user/view.ts";

/** Everybody, with their teams, by name; or those whom words find, a page at a time. */
export async function list(ctx: Context, raw: ListUsersInput = {}): Promise<UserList> {
  authorize(ctx.principal, "user.list");
  const { search, limit, after } = parse(listUsersInput, raw);
  const matching = and(...whoHasWords(ctx, search));
  const query = ctx.db
    .select()
    .from(users)
    .where(and(matching, after === undefined ? undefined : isAfter(after)))
    .orderBy(asc(users.name), asc(users.id));
  const [rows, [all]] = await Promise.all([
    limit === undefined ? query : query.limit(limit + 1),
    ctx.db.select({ n: count() }).from(users).where(matching),
  ]);
  await refuseUnknownPlace(ctx, rows, { after, table: users, row: (id) => eq(users.id, id) });
  const page = rows.slice(0, limit);
  return {
    users: await viewsOf(ctx, page),
    total: all?.n ?? 0,
    next: page.length < rows.length ? (page.at(-1)?.id ?? null) : null,
  };
}

/** In the name, the e-mail or a team; "admin" finds admins. */
const whoHasWords = (ctx: Context, search: string | undefined): SQL[] =>
  hasWords(search, (contains) => [
    contains(users.name),
    contains(users.email),
    sql`(${users.isAdmin} and ${contains(sql`'admin'`)})`,
    exists(
      ctx.db
        .select({ one: sql`1` })
        .from(memberships)
        .innerJoin(teams, eq(teams.id, memberships.teamId))
        .where(and(eq(memberships.userId, users.id), contains(teams.name))),
    ),
  ]);

/** Behind a person in the order of the list. */
const isAfter = (id: string): SQL => sql`(${users.name}, ${users.id}) > (select name, id from users where id = ${id})`;
