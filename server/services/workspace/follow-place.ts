import { and, eq } from "drizzle-orm";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import { workspaces } from "#server/db/schema/index.ts";
import type { PlaceNews } from "#server/launchers/launcher.ts";
import { notify } from "#server/live.ts";
import { withdrawMove } from "#server/services/notice/withdraw.ts";
import { moving } from "#server/services/notice/words.ts";
import { writeNotices } from "#server/services/notice/write.ts";
import type { WorkspaceRow } from "./load.ts";
import { restartLocked } from "./restart.ts";

/**
 * What is to be known of the place where a workspace runs is told on its page. When it has to leave, its owner has a
 * notice, and after that it is started anew; when the place stays after all, nothing happens.
 */
export async function followPlace(
  ctx: Context,
  { row, news }: { row: WorkspaceRow; news: PlaceNews | undefined },
): Promise<void> {
  authorize(ctx.principal, "workspace.follow-place");
  if (isTold(row, news) && !isDue(row, ctx.now())) return;
  await inTransaction(ctx, async (tx) => {
    const current = and(
      eq(workspaces.id, row.id),
      eq(workspaces.generation, row.generation),
      eq(workspaces.desired, "running"),
      eq(workspaces.observed, "running"),
    );
    const [now] = await tx.db.select().from(workspaces).where(current).for("no key update");
    if (now === undefined) return;
    if (news?.movesAfterMs !== undefined && isDue(now, tx.now()))
      return await restartLocked(tx, now, { because: news.sentence });
    if (isTold(now, news)) return;
    const notice = news?.movesAfterMs;
    const movesAt = notice === undefined ? null : (now.movesAt ?? new Date(tx.now().getTime() + notice));
    await tx.db
      .update(workspaces)
      .set({ message: news?.sentence ?? null, movesAt })
      .where(current);
    if (movesAt === null) await withdrawMove(tx, now);
    else await writeNotices(tx, [moving(now, movesAt)]);
    await notify(tx.db, "workspace", row.id);
  });
}

const isTold = ({ message, movesAt }: WorkspaceRow, news: PlaceNews | undefined) =>
  message === (news?.sentence ?? null) && (movesAt !== null) === (news?.movesAfterMs !== undefined);

const isDue = ({ movesAt }: WorkspaceRow, now: Date) => movesAt !== null && movesAt <= now;
