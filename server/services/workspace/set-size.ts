import { eq } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import type { WorkspaceView } from "#server/contracts/workspace.ts";
import { type SetWorkspaceSizeInput, setWorkspaceSizeInput } from "#server/contracts/workspace-size.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { refuseStale } from "#server/services/refuse-stale.ts";
import { get } from "#server/services/workspace/get.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";
import { chooseSize } from "#server/services/workspace-size/choose.ts";

/** Gives a workspace another size, by the rules of a launch; its next start has it. */
export async function setSize(ctx: Context, raw: SetWorkspaceSizeInput): Promise<WorkspaceView> {
  const { id, size, version } = parse(setWorkspaceSizeInput, raw);
  return await inTransaction(ctx, async (tx) => {
    // The size before the workspace, in the order in which an edit of the size takes them.
    const set = await chooseSize(tx, { ...(await loadWorkspace(tx, id, "workspace.change")), size });
    const row = await loadWorkspace(tx, id, "workspace.change", { lock: true });
    refuseStale(version, { version: row.sizeVersion }, `the size of ${row.name}`);
    await tx.db
      .update(workspaces)
      .set({ ...set, sizeVersion: row.sizeVersion + 1 })
      .where(eq(workspaces.id, id));
    const { sizeId, sizeCpuMilli, sizeMemoryBytes } = row;
    await audit(tx, {
      action: "workspace.set-size",
      subject: id,
      teamId: row.teamId,
      detail: { before: { sizeId, sizeCpuMilli, sizeMemoryBytes }, after: set },
    });
    await notify(tx.db, "workspace", id);
    return await get(tx, { id });
  });
}
