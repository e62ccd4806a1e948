import { eq } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import { type WorkspaceInput, workspaceInput } from "#server/contracts/workspace.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { loadRemoved } from "#server/services/workspace/load-removed.ts";

/** Deletes the files of a removed workspace early. It cannot be restored afterwards. */
export async function deleteFiles(ctx: Context, raw: WorkspaceInput): Promise<Record<string, never>> {
  const { id } = parse(workspaceInput, raw);
  await inTransaction(ctx, async (tx) => {
    const { name, teamId } = await loadRemoved(tx, id, "workspace.delete-files");
    await tx.db.update(workspaces).set({ filesKeptUntil: null }).where(eq(workspaces.id, id));
    await audit(tx, { action: "workspace.delete-files", subject: id, teamId, detail: { name } });
    await notify(tx.db, "workspace", id);
  });
  return {};
}
