import { eq, inArray } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { datasetSource } from "#server/contracts/dataset.ts";
import { datasets, workspaceDatasets } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { unmountable } from "#server/launchers/mountable.ts";

type Workspace = { id: string; teamId: string; launcher: string };

/**
 * Writes which datasets a workspace mounts, in the caller's transaction. They are everybody's or of the workspace's own
 * team, whoever chooses: its files are for that team to see. Returns their names.
 */
export async function writeDatasets(ctx: Context, workspace: Workspace, ids: readonly string[]): Promise<string[]> {
  const wanted = [...new Set(ids)];
  const rows =
    wanted.length === 0
      ? []
      : await ctx.db.select().from(datasets).where(inArray(datasets.id, wanted)).orderBy(datasets.name);
  const mine = rows.filter(({ teamId }) => teamId === null || teamId === workspace.teamId);
  if (mine.length < wanted.length) {
    throw new SluiceError("not-found", "datasets: One of them is not there, or is another team's. Choose again.");
  }
  const names = mine.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) {
    throw new SluiceError("conflict", `datasets: Two of them are named ${twice}, and so one folder. Choose one.`);
  }
  for (const { name, source } of mine) {
    const reason = unmountable(workspace.launcher, { name, kind: datasetSource.parse(source).kind });
    if (reason !== undefined)
      throw new SluiceError("refused", `datasets: ${reason} Leave it out, or choose an environment that runs there.`);
  }
  await ctx.db.delete(workspaceDatasets).where(eq(workspaceDatasets.workspaceId, workspace.id));
  if (mine.length > 0) {
    await ctx.db.insert(workspaceDatasets).values(mine.map(({ id }) => ({ workspaceId: workspace.id, datasetId: id })));
  }
  return names;
}
