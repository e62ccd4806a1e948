import { and, count, desc, eq, isNull } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { type ListNoticesInput, listNoticesInput, type NoticeList } from "#server/contracts/notice.ts";
import { notices } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";

/** What whoever asks was told, the newest first. */
export async function list(ctx: Context, raw: ListNoticesInput = {}): Promise<NoticeList> {
  authorize(ctx.principal, "notice.list");
  const { limit } = parse(listNoticesInput, raw);
  const userId = reader(ctx);
  const [rows, [unread]] = await Promise.all([
    ctx.db
      .select()
      .from(notices)
      .where(eq(notices.userId, userId))
      .orderBy(desc(notices.createdAt), desc(notices.id))
      .limit(limit),
    ctx.db
      .select({ n: count() })
      .from(notices)
      .where(and(eq(notices.userId, userId), isNull(notices.readAt))),
  ]);
  return {
    unread: unread?.n ?? 0,
    notices: rows.map(({ id, kind, title, body, href, dueAt, createdAt, readAt }) => ({
      ...{ id: id as `ntc-${string}`, kind, title, body, href },
      dueAt: dueAt?.toISOString() ?? null,
      createdAt: createdAt.toISOString(),
      readAt: readAt?.toISOString() ?? null,
    })),
  };
}

/** Notices are people's. */
export function reader(ctx: Context): string {
  if (ctx.principal.kind === "user") return ctx.principal.userId;
  throw new SluiceError("forbidden", "Only people are told notices.");
}
