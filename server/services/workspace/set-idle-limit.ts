import { eq } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import { type SetIdleLimitInput, setIdleLimitInput, type WorkspaceView } from "#server/contracts/workspace.ts";
import { teamPolicies, workspaces } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { refuseStale } from "#server/services/refuse-stale.ts";
import { get } from "#server/services/workspace/get.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";
import { idleLimit } from "./idle-limit.ts";

/** Sets after how long without activity a workspace is stopped; at most what its team allows. */
export async function setIdleLimit(ctx: Context, raw: SetIdleLimitInput): Promise<WorkspaceView> {
  const { id, idleSeconds, version } = parse(setIdleLimitInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const row = await loadWorkspace(tx, id, "workspace.change", { lock: true });
    refuseStale(version, { version: row.idleLimitVersion }, `when ${row.name} stops`);
    const [policy] = await tx.db.select().from(teamPolicies).where(eq(teamPolicies.teamId, row.teamId));
    const installation = env().SLUICE_WORKSPACE_IDLE_SECONDS;
    const most = idleLimit({ own: null, team: policy?.workspaceIdleSeconds ?? null, installation });
    if (idleSeconds !== null && most !== null && idleSeconds > most) {
      const hours = Math.floor(most / 360) / 10;
      throw new SluiceError("invalid", `idleSeconds: Your team's workspaces stop after at most ${hours} h.`);
    }
    await tx.db
      .update(workspaces)
      .set({ idleSeconds, keepUntil: null, idleLimitVersion: row.idleLimitVersion + 1 })
      .where(eq(workspaces.id, id));
    await audit(tx, {
      action: "workspace.set-idle-limit",
      subject: id,
      teamId: row.teamId,
      detail: { before: row.idleSeconds, after: idleSeconds },
    });
    await notify(tx.db, "workspace", id);
    return await get(tx, { id });
  });
}
