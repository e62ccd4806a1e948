import { eq } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import { type ChooseDatasetsInput, chooseDatasetsInput, type WorkspaceDatasetList } from "#server/contracts/dataset.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { refuseStale } from "#server/services/refuse-stale.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";
import { list } from "./list.ts";
import { writeDatasets } from "./write.ts";

/** Which datasets a workspace mounts from its next start on. */
export async function choose(ctx: Context, raw: ChooseDatasetsInput): Promise<WorkspaceDatasetList> {
  const { id, datasets, version } = parse(chooseDatasetsInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const row = await loadWorkspace(tx, id, "workspace.change", { lock: true });
    refuseStale(version, { version: row.datasetsVersion }, `the datasets of ${row.name}`);
    const names = await writeDatasets(tx, row, datasets);
    const datasetsVersion = row.datasetsVersion + 1;
    await tx.db.update(workspaces).set({ datasetsVersion }).where(eq(workspaces.id, id));
    await audit(tx, { action: "workspace.choose-datasets", subject: id, teamId: row.teamId, detail: { names } });
    await notify(tx.db, "workspace", id);
    return await list(tx, { id });
  });
}
