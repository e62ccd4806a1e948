import { and, eq, isNull } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import { type WorkspaceInput, workspaceInput } from "#server/contracts/workspace.ts";
import { egressRefusals, gatewaySessions, workspaces } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { endForWorkspace } from "#server/services/lease/end-for-workspace.ts";
import { filesKeptUntil } from "#server/services/workspace/kept-files.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";

/**
 * Wants it gone: notebooks end, GPUs go back, and its name is free at once. Its files are kept for the installation's
 * period (SLUICE_REMOVED_WORKSPACE_DAYS), and `restore` brings it back. What the installation itself removes is a test
 * of its own, whose files nobody needs.
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
    await notify(tx.db, "workspace", id);
  });
  return {};
}
