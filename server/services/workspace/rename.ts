import { eq } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import { type RenameWorkspaceInput, renameWorkspaceInput, type WorkspaceView } from "#server/contracts/workspace.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { get } from "#server/services/workspace/get.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";
import { refuseTakenName } from "#server/services/workspace/refuse-taken-name.ts";

/** Renames a workspace. Its address, files and leases depend on its id and stay as they are. */
export async function rename(ctx: Context, raw: RenameWorkspaceInput): Promise<WorkspaceView> {
  const { id, name } = parse(renameWorkspaceInput, raw);
  return await refuseTakenName(name, () =>
    inTransaction(ctx, async (tx) => {
      const row = await loadWorkspace(tx, id, "workspace.change", { lock: true });
      if (row.name !== name) {
        await tx.db.update(workspaces).set({ name }).where(eq(workspaces.id, id));
        const detail = { before: { name: row.name }, after: { name } };
        await audit(tx, { action: "workspace.rename", subject: id, teamId: row.teamId, detail });
        await notify(tx.db, "workspace", id);
      }
      return await get(tx, { id });
    }),
  );
}
