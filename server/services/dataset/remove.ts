import { eq } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import { type DatasetInput, datasetInput } from "#server/contracts/dataset.ts";
import { datasets } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { loadDataset } from "./load.ts";

/** Forgets a dataset. Its files stay where they are; workspaces that mount it have it until they are started again. */
export async function remove(ctx: Context, raw: DatasetInput): Promise<Record<string, never>> {
  const { id } = parse(datasetInput, raw);
  await inTransaction(ctx, async (tx) => {
    const row = await loadDataset(tx, id, "dataset.remove");
    await tx.db.delete(datasets).where(eq(datasets.id, id));
    const detail = { name: row.name, source: row.source };
    await audit(tx, { action: "dataset.remove", subject: id, teamId: row.teamId ?? undefined, detail });
    await notify(tx.db, "dataset", id);
  });
  return {};
}
