import { and, asc, count, eq, ne, or, type SQL, sql } from "drizzle-orm";
import { isAllowed } from "#server/auth/authorize.ts";
import type { Principal } from "#server/auth/principal.ts";
import type { Context } from "#server/context.ts";
import { type DatasetView, datasetSource } from "#server/contracts/dataset.ts";
import { datasets, teams, users, workspaceDatasets, workspaces } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";

const UNMEASURED = "Its folder cannot be read. Whoever registered it, or an admin, sees why.";

/** Datasets as pages and API show them to this principal, by name. */
export async function readDatasets(ctx: Context, where: SQL | undefined): Promise<DatasetView[]> {
  const used = ctx.db
    .select({
      ...{ datasetId: workspaceDatasets.datasetId, n: count().as("n") },
      inMemory:
        sql`count(*) filter (where ${workspaceDatasets.prefetchState} = 'done' and ${workspaces.observed} = 'running')`
          .mapWith(Number)
          .as("in_memory"),
    })
    .from(workspaceDatasets)
    .innerJoin(workspaces, and(eq(workspaces.id, workspaceDatasets.workspaceId), ne(workspaces.desired, "removed")))
    .groupBy(workspaceDatasets.datasetId)
    .as("used");
  const rows = await ctx.db
    .select({ row: datasets, teamName: teams.name, byName: users.name, workspaces: used.n, inMemoryFor: used.inMemory })
    .from(datasets)
    .leftJoin(teams, eq(teams.id, datasets.teamId))
    .leftJoin(users, eq(users.id, datasets.registeredBy))
    .leftJoin(used, eq(used.datasetId, datasets.id))
    .where(and(visibleTo(ctx.principal), where))
    .orderBy(asc(datasets.name), asc(datasets.id));
  return rows.map(({ row, teamName, byName, workspaces, inMemoryFor }) => {
    const source = datasetSource.parse(row.source);
    const canChange = isAllowed(ctx.principal, "dataset.edit", { teamId: row.teamId ?? undefined });
    return {
      id: row.id,
      name: row.name,
      description: row.description,
      team: row.teamId === null ? null : { id: row.teamId, name: teamName ?? row.teamId },
      kind: source.kind,
      source: canChange ? source : null,
      writable: row.writable,
      prefetch: row.prefetch,
      sizeBytes: row.sizeBytes,
      fileCount: row.fileCount,
      measuredAt: row.measuredAt?.toISOString() ?? null,
      // It names the folder.
      measureMessage: row.measureMessage === null || canChange ? row.measureMessage : UNMEASURED,
      workspaces: workspaces ?? 0,
      inMemoryFor: inMemoryFor ?? 0,
      registeredBy: row.registeredBy === null ? null : { id: row.registeredBy, name: byName ?? "somebody" },
      createdAt: row.createdAt.toISOString(),
      version: row.version,
      canChange,
    };
  });
}

/** The one that the caller has just written. */
export async function readDataset(ctx: Context, id: string): Promise<DatasetView> {
  const [view] = await readDatasets(ctx, eq(datasets.id, id));
  if (view === undefined) throw new SluiceError("internal", "The dataset was not written.");
  return view;
}

/** Everybody's and those of one's own teams; an admin sees all. */
export function visibleTo(principal: Principal): SQL | undefined {
  if (principal.kind !== "user" || principal.isAdmin) return undefined;
  const own = sql.param(Object.keys(principal.teams));
  return or(sql`${datasets.teamId} is null`, sql`${datasets.teamId} = any(${own}::text[])`);
}
