import { and, count, desc, eq, isNull, type SQL, sql } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { type ListNoticesInput, listNoticesInput, type NoticePage } from "#server/contracts/notice.ts";
import { notices } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { refuseUnknownPlace } from "#server/page-of.ts";
import { parse } from "#server/parse.ts";

/** What whoever asks was told, the newest first, a page at a time. */
export async function list(ctx: Context, raw: ListNoticesInput = {}): Promise<NoticePage> {
  authorize(ctx.principal, "notice.list");
  const { limit, show, after } = parse(listNoticesInput, raw);
  const userId = reader(ctx);
  const own = eq(notices.userId, userId);
  const unread = and(own, isNull(notices.readAt));
  const matching = show === "unread" ? unread : own;
  const [rows, [counted]] = await Promise.all([
    ctx.db
      .select()
      .from(notices)
      .where(and(matching, after === undefined ? undefined : isBefore(userId, after)))
      .orderBy(desc(notices.createdAt), desc(notices.id))
      .limit(limit + 1),
    ctx.db
      .select({ all: count(), unread: sql<number>`(count(*) filter (where ${isNull(notices.readAt)}))::int` })
      .from(notices)
      .where(own),
  ]);
  const row = (id: string) => and(own, eq(notices.id, id));
  await refuseUnknownPlace(ctx, rows, { after, table: notices, row });
  const page = rows.slice(0, limit);
  const { all, unread: left } = counted ?? { all: 0, unread: 0 };
  const last = page.at(-1)?.id;
  return {
    unread: left,
    total: show === "unread" ? left : all,
    next: last !== undefined && page.length < rows.length ? last : null,
    notices: page.map(({ id, kind, title, body, href, dueAt, createdAt, readAt }) => ({
      ...{ id: id as `ntc-${string}`, kind, title, body, href },
      dueAt: dueAt?.toISOString() ?? null,
      createdAt: createdAt.toISOString(),
      readAt: readAt?.toISOString() ?? null,
    })),
  };
}

/** Told before one of their notices, which may have been read since. */
const isBefore = (userId: string, id: string): SQL =>
  sql`(${notices.createdAt}, ${notices.id}) < (select n.created_at, n.id from notices n where n.id = ${id}
    and n.user_id = ${userId})`;

/** Notices are people's. */
export function reader(ctx: Context): string {
  if (ctx.principal.kind === "user") return ctx.principal.userId;
  throw new SluiceError("forbidden", "Only people are told notices.");
}
