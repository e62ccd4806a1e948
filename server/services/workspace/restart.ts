import { eq } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import { type WorkspaceInput, type WorkspaceView, workspaceInput } from "#server/contracts/workspace.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { endForWorkspace } from "#server/services/lease/end-for-workspace.ts";
import { withdrawMove } from "#server/services/notice/withdraw.ts";
import { refuseDeactivated } from "#server/services/user/locked.ts";
import { get } from "#server/services/workspace/get.ts";
import { loadWorkspace, type WorkspaceRow } from "#server/services/workspace/load.ts";

/** Wants it running as a new generation: notebooks end, GPUs go back, files stay. */
export async function restart(ctx: Context, raw: WorkspaceInput): Promise<WorkspaceView> {
  const { id } = parse(workspaceInput, raw);
  return await inTransaction(ctx, async (tx) => {
    await refuseDeactivated(tx, (await loadWorkspace(tx, id, "workspace.restart")).ownerId);
    const row = await loadWorkspace(tx, id, "workspace.restart", { lock: true });
    if (row.desired !== "running") throw new SluiceError("conflict", `"${row.name}" does not run. Start it instead.`);
    await restartLocked(tx, row);
    await withdrawMove(tx, row);
    return await get(tx, { id });
  });
}

/** The restart itself, in the transaction of a caller who has authorised it and holds the row. */
export async function restartLocked(tx: Context, row: WorkspaceRow, why: Record<string, unknown> = {}): Promise<void> {
  const { id, teamId, generation } = row;
  await tx.db
    .update(workspaces)
    .set({
      ...{ observed: "pending", message: null, generation: generation + 1 },
      ...{ keepUntil: null, movesAt: null, cpuMilli: null, memoryBytes: null },
    })
    .where(eq(workspaces.id, id));
  const endedLeases = await endForWorkspace(tx, { workspaceId: id });
  await audit(tx, { action: "workspace.restart", subject: id, teamId, detail: { ...why, endedLeases } });
  await notify(tx.db, "workspace", id);
}
