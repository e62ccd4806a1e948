import { and, gt, like, notInArray } from "drizzle-orm";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import { notices } from "#server/db/schema/index.ts";
import { notifyAll } from "#server/live.ts";
import { stopping } from "#server/services/notice/words.ts";
import { writeNotices } from "#server/services/notice/write.ts";
import { idleCandidates } from "./stop-idle.ts";

/** So long before the stop its owner is told: a fifth of the limit, a quarter of an hour at most. */
const WARN_PART = 5;
const WARN_MOST_MS = 15 * 60_000;

/** Tells the owners of workspaces that soon stop for want of activity, once for each stop, and takes back what has moved. */
export async function warnOfStop(ctx: Context): Promise<void> {
  authorize(ctx.principal, "notice.write");
  const now = ctx.now();
  const told = (await idleCandidates(ctx)).flatMap(({ row, limit, stopsAt }) => {
    const noticeMs = Math.min(WARN_MOST_MS, (limit * 1000) / WARN_PART);
    if (stopsAt <= now || stopsAt.getTime() - now.getTime() > noticeMs) return [];
    return [stopping({ id: row.id, name: row.name, userId: row.ownerId, limit }, stopsAt)];
  });
  await inTransaction(ctx, async (tx) => {
    const keys = told.map(({ key }) => key);
    // Somebody worked there, or extended it: what was announced does not happen then.
    const gone = await tx.db
      .delete(notices)
      .where(
        and(
          like(notices.key, "stop/%"),
          gt(notices.dueAt, now),
          keys.length === 0 ? undefined : notInArray(notices.key, keys),
        ),
      )
      .returning({ userId: notices.userId });
    await notifyAll(
      tx.db,
      gone.map(({ userId: id }) => ({ topic: "notice", id })),
    );
    await writeNotices(tx, told);
  });
}
