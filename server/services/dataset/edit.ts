import { eq } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import { type DatasetView, datasetSource, type EditDatasetInput, editDatasetInput } from "#server/contracts/dataset.ts";
import { datasets } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { refuseStale } from "#server/services/refuse-stale.ts";
import { loadDataset } from "./load.ts";
import { readDataset } from "./view.ts";

/** Changes what is told of a dataset, and whether it is read ahead from the next start of a workspace on. */
export async function edit(ctx: Context, raw: EditDatasetInput): Promise<DatasetView> {
  const { id, description, prefetch, sizeBytes, version } = parse(editDatasetInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const row = await loadDataset(tx, id, "dataset.edit");
    refuseStale(version, row, `the dataset ${row.name}`);
    const isFolder = datasetSource.parse(row.source).kind === "folder";
    if (isFolder && sizeBytes !== undefined) {
      throw new SluiceError("invalid", "sizeBytes: The size of a folder is measured; leave it out.");
    }
    const size = sizeBytes === undefined ? {} : { sizeBytes };
    const set = { description, prefetch, ...size };
    await tx.db
      .update(datasets)
      .set({ ...set, version: row.version + 1 })
      .where(eq(datasets.id, id));
    const before = { description: row.description, prefetch: row.prefetch, sizeBytes: row.sizeBytes };
    const detail = { name: row.name, before, after: set };
    await audit(tx, { action: "dataset.edit", subject: id, teamId: row.teamId ?? undefined, detail });
    await notify(tx.db, "dataset", id);
    return await readDataset(tx, id);
  });
}
