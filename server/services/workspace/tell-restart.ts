import { and, eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { workspaceEvents, workspaces } from "#server/db/schema/index.ts";
import type { Restarted } from "#server/launchers/launcher.ts";
import { notify } from "#server/live.ts";
import { restarted as restartedNotice, restartedTitle } from "#server/services/notice/words.ts";
import { writeNotices } from "#server/services/notice/write.ts";
import type { WorkspaceRow } from "./load.ts";

/**
 * A running workspace's server ended by itself and was started again: its owner has a notice, and its steps say so,
 * once, however often this is seen. What ended before it ran belongs to the start.
 */
export async function tellRestart(
  ctx: Context,
  { row, restarted }: { row: WorkspaceRow; restarted: Restarted },
): Promise<void> {
  authorize(ctx.principal, "workspace.tell-restart");
  const { id, generation, startedAt } = row;
  if (startedAt === null || restarted.at <= startedAt) return;
  const { at, sentence } = restarted;
  // Each restart is a step of its own that was over at once: it is not a failure of the start.
  const event = { workspaceId: id, generation, step: `restart-${at.getTime()}`, at };
  const isTold = async ({ db }: Pick<Context, "db">) => {
    const same = and(
      eq(workspaceEvents.workspaceId, id),
      eq(workspaceEvents.generation, generation),
      eq(workspaceEvents.step, event.step),
    );
    return (await db.select({ seq: workspaceEvents.seq }).from(workspaceEvents).where(same).limit(1)).length > 0;
  };
  if (await isTold(ctx)) return;
  await inTransaction(ctx, async (tx) => {
    const current = and(
      eq(workspaces.id, id),
      eq(workspaces.generation, generation),
      eq(workspaces.desired, "running"),
      eq(workspaces.observed, "running"),
    );
    const [now] = await tx.db.select().from(workspaces).where(current).for("no key update");
    if (now === undefined || (await isTold(tx))) return;
    const title = restartedTitle(restarted);
    await tx.db.insert(workspaceEvents).values([
      { ...event, kind: "step-started", message: title.charAt(0).toUpperCase() + title.slice(1) },
      { ...event, kind: "step-done", message: sentence },
    ]);
    await writeNotices(tx, [restartedNotice(now, restarted)]);
    await audit(tx, {
      action: "workspace.tell-restart",
      subject: id,
      teamId: now.teamId,
      detail: { message: sentence },
    });
    await notify(tx.db, "workspace", id);
  });
}
