import { and, eq, isNull } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import { type WorkspaceInput, workspaceInput } from "#server/contracts/workspace.ts";
import { egressRefusals, gatewaySessions, workspaces } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { endForWorkspace } from "#server/services/lease/end-for-workspace.ts";
import { filesKeptUntil } from "#server/services/workspace/kept-files.ts";
import { giveUpOldest } from "#server/services/workspace/limit-kept-files.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";

/**
 * Removes a workspace: notebooks end, GPUs are released, and the name is free at once. Its files are kept for the
 * installation's period (SLUICE_REMOVED_WORKSPACE_DAYS), and `restore` brings it back. Above the limit of removed
 * workspaces, the oldest files are deleted first. Test workspaces, which the system principal removes, keep no files.
 */
export async function remove(ctx: Context, raw: WorkspaceInput): Promise<Record<string, never>> {
  const { id } = parse(workspaceInput, raw);
  await inTransaction(ctx, async (tx) => {
    const row = await loadWorkspace(tx, id, "workspace.remove", { lock: true });
    const keptUntil = tx.principal.kind === "system" ? null : filesKeptUntil(tx.now());
    await tx.db
      .update(workspaces)
      .set({ desired: "removed", message: null, filesKeptUntil: keptUntil, keepUntil: null })
      .where(eq(workspaces.id, id));
    await tx.db
      .update(gatewaySessions)
      .set({ revokedAt: tx.now() })
      .where(and(eq(gatewaySessions.workspaceId, id), isNull(gatewaySessions.revokedAt)));
    await tx.db.delete(egressRefusals).where(eq(egressRefusals.workspaceId, id));
    const endedLeases = await endForWorkspace(tx, { workspaceId: id });
    const detail = { name: row.name, endedLeases, ...(keptUntil && { filesKeptUntil: keptUntil.toISOString() }) };
    await audit(tx, { action: "workspace.remove", subject: id, teamId: row.teamId, detail });
    if (keptUntil !== null) await giveUpOldest(tx, row.ownerId);
    await notify(tx.db, "workspace", id);
  });
  return {};
}
