import { sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { insertion } from "#server/db/insertion.ts";
import { notices } from "#server/db/schema/index.ts";
import { newId } from "#server/ids.ts";
import { type LiveTopic, notifyAll } from "#server/live.ts";

/** What somebody is to be told. `key` says what it is about: with the same key nobody is told twice. */
export type Notice = Pick<typeof notices.$inferInsert, "userId" | "kind" | "key" | "title" | "body" | "href"> & {
  dueAt?: Date | null;
};

/** Tells people, in the caller's transaction. */
export async function writeNotices(ctx: Pick<Context, "db" | "now">, told: readonly Notice[]): Promise<void> {
  if (told.length === 0) return;
  const rows = told.map((notice) => ({
    ...notice,
    id: newId("ntc"),
    dueAt: notice.dueAt ?? null,
    createdAt: ctx.now(),
  }));
  const written = await ctx.db.execute<{ user_id: string }>(
    sql`${insertion(notices, rows)} on conflict (user_id, key) do nothing returning user_id`,
  );
  await notifyAll(
    ctx.db,
    [...written].map(({ user_id: id }) => ({ topic: "notice" satisfies LiveTopic, id })),
  );
}
