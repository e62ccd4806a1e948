import { eq } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import { type WorkspaceInput, type WorkspaceView, workspaceInput } from "#server/contracts/workspace.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { refuseDeactivated } from "#server/services/user/locked.ts";
import { get } from "#server/services/workspace/get.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";
import { refuseTooManyRunning } from "#server/services/workspace/refuse-too-many.ts";

/** Wants it running, as a new generation. Starting what runs already changes nothing. */
export async function start(ctx: Context, raw: WorkspaceInput): Promise<WorkspaceView> {
  const { id } = parse(workspaceInput, raw);
  return await inTransaction(ctx, async (tx) => {
    // The account before the workspace, in the order in which a deactivation takes them.
    await refuseDeactivated(tx, (await loadWorkspace(tx, id, "workspace.start")).ownerId);
    const row = await loadWorkspace(tx, id, "workspace.start", { lock: true });
    if (row.desired !== "running") await refuseTooManyRunning(tx, row.ownerId);
    if (row.desired !== "running" || row.observed === "failed") {
      await tx.db
        .update(workspaces)
        .set({ desired: "running", observed: "pending", message: null, generation: row.generation + 1 })
        .where(eq(workspaces.id, id));
      await audit(tx, { action: "workspace.start", subject: id, teamId: row.teamId });
      await notify(tx.db, "workspace", id);
    }
    return await get(tx, { id });
  });
}
