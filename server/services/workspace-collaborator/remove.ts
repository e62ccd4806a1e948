import { and, eq, isNull } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import { type RemoveCollaboratorInput, removeCollaboratorInput } from "#server/contracts/workspace-collaborator.ts";
import { gatewaySessions, workspaceCollaborators } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notifyAll } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { withdrawNotices } from "#server/services/notice/withdraw.ts";
import { invitationKey } from "#server/services/notice/words.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";

/**
 * Takes a collaborator out of a workspace, or lets whoever asks leave it. What they have open there closes at once; what
 * an editor has started goes on until the workspace restarts.
 */
export async function remove(ctx: Context, raw: RemoveCollaboratorInput): Promise<Record<string, never>> {
  const { id, userId } = parse(removeCollaboratorInput, raw);
  await inTransaction(ctx, async (tx) => {
    const own = tx.principal.kind === "user" && tx.principal.userId === userId;
    const row = await loadWorkspace(tx, id, own ? "workspace.leave" : "workspace.unshare");
    const gone = await tx.db
      .delete(workspaceCollaborators)
      .where(and(eq(workspaceCollaborators.workspaceId, id), eq(workspaceCollaborators.userId, userId)))
      .returning({ role: workspaceCollaborators.role });
    if (gone.length === 0) throw new SluiceError("not-found", "That person does not collaborate here.");
    const { workspaceId, userId: by, revokedAt } = gatewaySessions;
    await tx.db
      .update(gatewaySessions)
      .set({ revokedAt: tx.now() })
      .where(and(eq(workspaceId, id), eq(by, userId), isNull(revokedAt)));
    await withdrawNotices(tx, [invitationKey(id, userId)]);
    const detail = { userId, role: gone[0]?.role };
    await audit(tx, { action: "workspace.remove-collaborator", subject: id, teamId: row.teamId, detail });
    await notifyAll(tx.db, [
      { topic: "workspace", id },
      // Whoever has left it does not hear of it any more.
      { topic: "workspace", id: userId },
    ]);
  });
  return {};
}
