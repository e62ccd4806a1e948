import { eq } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import { type WorkspaceInput, type WorkspaceView, workspaceInput } from "#server/contracts/workspace.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { endForWorkspace } from "#server/services/lease/end-for-workspace.ts";
import { withdrawMove } from "#server/services/notice/withdraw.ts";
import { get } from "#server/services/workspace/get.ts";
import { loadWorkspace, type WorkspaceRow } from "#server/services/workspace/load.ts";

/** Wants it stopped: notebooks end, GPUs go back to the pool at once, files stay. */
export async function stop(ctx: Context, raw: WorkspaceInput): Promise<WorkspaceView> {
  const { id } = parse(workspaceInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const row = await loadWorkspace(tx, id, "workspace.stop", { lock: true });
    if (row.desired !== "stopped") {
      await stopLocked(tx, row);
      await withdrawMove(tx, row);
    }
    return await get(tx, { id });
  });
}

/** The stop itself, in the transaction of a caller who has authorised it and holds the row. */
export async function stopLocked(tx: Context, row: WorkspaceRow, why: Record<string, unknown> = {}): Promise<void> {
  const observed = row.observed === "failed" ? "stopped" : "stopping";
  await tx.db
    .update(workspaces)
    .set({
      desired: "stopped",
      observed,
      message: null,
      keepUntil: null,
      movesAt: null,
      cpuMilli: null,
      memoryBytes: null,
    })
    .where(eq(workspaces.id, row.id));
  const endedLeases = await endForWorkspace(tx, { workspaceId: row.id });
  await audit(tx, { action: "workspace.stop", subject: row.id, teamId: row.teamId, detail: { ...why, endedLeases } });
  await notify(tx.db, "workspace", row.id);
}
