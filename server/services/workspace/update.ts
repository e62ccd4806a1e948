import { eq } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import { type UpdateWorkspaceInput, updateWorkspaceInput, type WorkspaceView } from "#server/contracts/workspace.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { get } from "#server/services/workspace/get.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";
import { restart } from "#server/services/workspace/restart.ts";

/** Takes the version of the environment that is offered; what runs is restarted with it, files and packages stay. */
export async function update(ctx: Context, raw: UpdateWorkspaceInput): Promise<WorkspaceView> {
  const { id, versionId } = parse(updateWorkspaceInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const row = await loadWorkspace(tx, id, "workspace.change", { lock: true });
    const { update: offered, name } = await get(tx, { id });
    if (offered?.id !== versionId) {
      throw new SluiceError("conflict", `That version is not offered to "${name}" now. Look at the page again.`);
    }
    await tx.db.update(workspaces).set({ imageVersionId: versionId }).where(eq(workspaces.id, id));
    const detail = { before: row.imageVersionId, after: versionId, version: offered.version };
    await audit(tx, { action: "workspace.update", subject: id, teamId: row.teamId, detail });
    await notify(tx.db, "workspace", id);
    return row.desired === "running" ? await restart(tx, { id }) : await get(tx, { id });
  });
}
