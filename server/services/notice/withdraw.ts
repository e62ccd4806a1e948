import { inArray } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { notices } from "#server/db/schema/index.ts";
import { type LiveTopic, notifyAll } from "#server/live.ts";
import { moveKey } from "./words.ts";

/** Takes back what was told under these keys and will not happen, in the caller's transaction. */
export async function withdrawNotices(ctx: Pick<Context, "db">, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return;
  const gone = await ctx.db
    .delete(notices)
    .where(inArray(notices.key, [...keys]))
    .returning({ userId: notices.userId });
  await notifyAll(
    ctx.db,
    gone.map(({ userId }) => ({ topic: "notice" satisfies LiveTopic, id: userId })),
  );
}

/** A workspace that was to move does not, or its owner was first. */
export async function withdrawMove(
  ctx: Pick<Context, "db">,
  { id, movesAt }: { id: string; movesAt: Date | null },
): Promise<void> {
  if (movesAt !== null) await withdrawNotices(ctx, [moveKey({ id }, movesAt)]);
}
