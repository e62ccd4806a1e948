import { eq } from "drizzle-orm";
import { type Context, inTransaction } from "#server/context.ts";
import { type DatasetInput, type DatasetView, datasetInput, datasetSource } from "#server/contracts/dataset.ts";
import { datasets } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { loadDataset } from "./load.ts";
import { readDataset } from "./view.ts";

/** Has a folder measured again now; the broker does it, and topic `dataset` tells when it is done. */
export async function measure(ctx: Context, raw: DatasetInput): Promise<DatasetView> {
  const { id } = parse(datasetInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const row = await loadDataset(tx, id, "dataset.edit");
    if (datasetSource.parse(row.source).kind !== "folder") {
      throw new SluiceError("refused", "Only folders are measured. Of anything else, edit the size that is told.");
    }
    await tx.db.update(datasets).set({ measuredAt: null }).where(eq(datasets.id, id));
    await notify(tx.db, "dataset", id);
    return await readDataset(tx, id);
  });
}
