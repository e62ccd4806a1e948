import { and, eq, ne } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction, systemContext } from "#server/context.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { endForWorkspace } from "#server/services/lease/end-for-workspace.ts";

/** A pod is gone, or its programs have ended: its credential is void, and what it holds goes back to the pool. */
export async function end(ctx: Context, input: { podUid: string }): Promise<boolean> {
  authorize(ctx.principal, "pod.end");
  return await endPod(ctx, input);
}

/** The end itself, for a caller who has authorised what it is a part of. Whether there was something to end. */
export async function endPod(ctx: Context, { podUid }: { podUid: string }): Promise<boolean> {
  return await inTransaction(systemContext(ctx.db, { now: ctx.now, traceId: ctx.traceId }), async (tx) => {
    const [row] = await tx.db
      .update(workspaces)
      .set({ desired: "removed", observed: "removed", credentialHash: null, stoppedAt: tx.now() })
      .where(and(eq(workspaces.podUid, podUid), ne(workspaces.desired, "removed")))
      .returning({ id: workspaces.id, teamId: workspaces.teamId, name: workspaces.name });
    if (row === undefined) return false;
    const endedLeases = await endForWorkspace(tx, { workspaceId: row.id });
    await audit(tx, { action: "pod.end", subject: row.id, teamId: row.teamId, detail: { pod: row.name, endedLeases } });
    await notify(tx.db, "workspace", row.id);
    return true;
  });
}
