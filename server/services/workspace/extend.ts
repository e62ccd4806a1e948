import { eq } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import { type ExtendWorkspaceInput, extendWorkspaceInput, type WorkspaceView } from "#server/contracts/workspace.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { get } from "#server/services/workspace/get.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";
import { LONGEST_EXTENSION_SECONDS } from "./idle-limit.ts";

/** Lets a running workspace be idle for longer: its stop moves by so much, once. */
export async function extend(ctx: Context, raw: ExtendWorkspaceInput): Promise<WorkspaceView> {
  const { id, forSeconds } = parse(extendWorkspaceInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const row = await loadWorkspace(tx, id, "workspace.work", { lock: true });
    const { stopsAt } = await get(tx, { id });
    if (stopsAt === null) {
      throw new SluiceError("conflict", `"${row.name}" is not about to be stopped: it does not run, or has no limit.`);
    }
    const from = Math.max(Date.parse(stopsAt), tx.now().getTime());
    const latest = tx.now().getTime() + LONGEST_EXTENSION_SECONDS * 1000;
    const keepUntil = new Date(from + forSeconds * 1000);
    if (keepUntil.getTime() > latest) {
      throw new SluiceError(
        "refused",
        "An idle workspace is kept for at most 7 days. Set a longer idle limit instead.",
      );
    }
    await tx.db.update(workspaces).set({ keepUntil }).where(eq(workspaces.id, id));
    const detail = { keepUntil: keepUntil.toISOString() };
    await audit(tx, { action: "workspace.extend", subject: id, teamId: row.teamId, detail });
    await notify(tx.db, "workspace", id);
    return await get(tx, { id });
  });
}
