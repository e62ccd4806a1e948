import { asc, eq } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { datasetSource, type WorkspaceDataset, type WorkspaceDatasetList } from "#server/contracts/dataset.ts";
import { type WorkspaceInput, workspaceInput } from "#server/contracts/workspace.ts";
import { datasets, workspaceDatasets } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";

/** Whoever reads ahead says so every second; after this they are gone. */
const SILENT_MS = 15_000;

/** The datasets of a workspace, by name, and how far each is in its node's cache. */
export async function list(ctx: Context, raw: WorkspaceInput): Promise<WorkspaceDatasetList> {
  const { id } = parse(workspaceInput, raw);
  const { datasetsVersion: version } = await loadWorkspace(ctx, id, "workspace.read");
  const rows = await ctx.db
    .select({ dataset: datasets, chosen: workspaceDatasets })
    .from(workspaceDatasets)
    .innerJoin(datasets, eq(datasets.id, workspaceDatasets.datasetId))
    .where(eq(workspaceDatasets.workspaceId, id))
    .orderBy(asc(datasets.name), asc(datasets.id));
  return {
    version,
    datasets: rows.map(({ dataset, chosen }) => ({
      id: dataset.id,
      name: dataset.name,
      description: dataset.description,
      kind: datasetSource.parse(dataset.source).kind,
      writable: dataset.writable,
      sizeBytes: dataset.sizeBytes,
      path: `~/datasets/${dataset.name}`,
      prefetch: prefetchOf(chosen, ctx.now()),
    })),
  };
}

function prefetchOf(row: typeof workspaceDatasets.$inferSelect, now: Date): WorkspaceDataset["prefetch"] {
  if (row.prefetchState === null) return null;
  const silent = now.getTime() - (row.prefetchAt?.getTime() ?? 0) > SILENT_MS;
  return {
    state: row.prefetchState === "reading" && silent ? "interrupted" : row.prefetchState,
    bytes: row.prefetchedBytes ?? 0,
    totalBytes: row.prefetchTotal,
    message: row.prefetchMessage,
  };
}
