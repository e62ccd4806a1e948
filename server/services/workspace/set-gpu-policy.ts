import { eq } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import { type SetGpuPolicyInput, setGpuPolicyInput, type WorkspaceView } from "#server/contracts/workspace.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { refuseStale } from "#server/services/refuse-stale.ts";
import { get } from "#server/services/workspace/get.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";

/** Sets how a workspace comes to a GPU. It holds from the next request on; what is attached stays. */
export async function setGpuPolicy(ctx: Context, raw: SetGpuPolicyInput): Promise<WorkspaceView> {
  const { id, gpuPolicy, defaultAmount, version } = parse(setGpuPolicyInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const row = await loadWorkspace(tx, id, "workspace.change", { lock: true });
    refuseStale(version, { version: row.gpuPolicyVersion }, `how ${row.name} comes to a GPU`);
    await tx.db
      .update(workspaces)
      .set({ gpuPolicy, defaultAmount, gpuPolicyVersion: row.gpuPolicyVersion + 1 })
      .where(eq(workspaces.id, id));
    await audit(tx, {
      action: "workspace.set-gpu-policy",
      subject: id,
      teamId: row.teamId,
      detail: {
        before: { gpuPolicy: row.gpuPolicy, defaultAmount: row.defaultAmount },
        after: { gpuPolicy, defaultAmount },
      },
    });
    await notify(tx.db, "workspace", id);
    return await get(tx, { id });
  });
}
