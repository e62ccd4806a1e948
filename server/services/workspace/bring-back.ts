import { and, eq } from "drizzle-orm";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { withdrawMove } from "#server/services/notice/withdraw.ts";
import { restarted } from "#server/services/notice/words.ts";
import { writeNotices } from "#server/services/notice/write.ts";
import type { WorkspaceRow } from "./load.ts";
import { restartLocked } from "./restart.ts";

/**
 * A workspace whose place is lost, by no fault of its own, is started anew where another could take it; its owner has a
 * notice. `reason`: what happened, a sentence.
 */
export async function bringBack(ctx: Context, { row, reason }: { row: WorkspaceRow; reason: string }): Promise<void> {
  authorize(ctx.principal, "workspace.bring-back");
  await inTransaction(ctx, async (tx) => {
    const current = and(
      eq(workspaces.id, row.id),
      eq(workspaces.generation, row.generation),
      eq(workspaces.desired, "running"),
      eq(workspaces.observed, "running"),
    );
    const [now] = await tx.db.select().from(workspaces).where(current).for("no key update");
    if (now === undefined) return;
    await withdrawMove(tx, now);
    await restartLocked(tx, now, { because: reason });
    const sentence = `${reason} It is started again on another node. The notebooks' variables are gone, files are kept.`;
    await writeNotices(tx, [restarted(now, { at: tx.now(), cause: "machine", sentence })]);
  });
}
