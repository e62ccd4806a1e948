import { authorize, type Context } from "#server/context.ts";
import type { DatasetList } from "#server/contracts/dataset.ts";
import { readDatasets } from "./view.ts";

/** Everybody's datasets and those of the own teams, by name; an admin sees all. */
export async function list(ctx: Context): Promise<DatasetList> {
  authorize(ctx.principal, "dataset.list");
  return { datasets: await readDatasets(ctx, undefined) };
}
