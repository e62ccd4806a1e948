import { and, asc, eq, isNull, or, sql } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { datasetSource } from "#server/contracts/dataset.ts";
import { datasets, teams, workspaceDatasets, workspaces } from "#server/db/schema/index.ts";
import type { DatasetMount } from "#server/launchers/launcher.ts";

/** What a workspace mounts at its start: of its own team or everybody's, by name. What was read ahead before is forgotten. */
export async function mountsOf(ctx: Context, workspaceId: string): Promise<DatasetMount[]> {
  authorize(ctx.principal, "workspace.mount-datasets");
  await ctx.db
    .update(workspaceDatasets)
    .set({ prefetchState: null, prefetchedBytes: null, prefetchTotal: null, prefetchMessage: null, prefetchAt: null })
    .where(eq(workspaceDatasets.workspaceId, workspaceId));
  const rows = await ctx.db
    .select({ dataset: datasets, team: teams.name })
    .from(workspaceDatasets)
    .innerJoin(workspaces, eq(workspaces.id, workspaceDatasets.workspaceId))
    .innerJoin(datasets, eq(datasets.id, workspaceDatasets.datasetId))
    .leftJoin(teams, eq(teams.id, datasets.teamId))
    .where(
      and(
        eq(workspaceDatasets.workspaceId, workspaceId),
        or(isNull(datasets.teamId), sql`${datasets.teamId} = ${workspaces.teamId}`),
      ),
    )
    .orderBy(asc(datasets.name));
  return rows.map(({ dataset, team }) => ({
    id: dataset.id,
    name: dataset.name,
    team: team ?? undefined,
    source: datasetSource.parse(dataset.source),
    writable: dataset.writable,
    prefetch: dataset.prefetch,
  }));
}
