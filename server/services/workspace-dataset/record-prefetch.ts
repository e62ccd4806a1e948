import { and, eq, sql } from "drizzle-orm";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import { workspaceDatasets } from "#server/db/schema/index.ts";
import type { Prefetched } from "#server/launchers/launcher.ts";
import { notify } from "#server/live.ts";

export type PrefetchOf = { workspaceId: string; generation: number; datasetId: string };

/**
 * Writes how far a dataset has come into the cache of a workspace's node. False when that is of no use any more: this
 * start of the workspace is over, or the dataset was taken out.
 */
export async function recordPrefetch(ctx: Context, of: PrefetchOf, prefetched: Prefetched): Promise<boolean> {
  authorize(ctx.principal, "workspace.mount-datasets");
  const { workspaceId, generation, datasetId } = of;
  return await inTransaction(ctx, async (tx) => {
    const written = await tx.db
      .update(workspaceDatasets)
      .set({
        prefetchState: prefetched.state,
        prefetchedBytes: prefetched.bytes,
        prefetchTotal: prefetched.totalBytes,
        prefetchMessage: prefetched.message,
        prefetchAt: tx.now(),
      })
      .where(
        and(
          eq(workspaceDatasets.workspaceId, workspaceId),
          eq(workspaceDatasets.datasetId, datasetId),
          sql`exists (select 1 from workspaces w where w.id = ${workspaceId}
            and w.generation = ${generation} and w.desired = 'running')`,
        ),
      )
      .returning({ datasetId: workspaceDatasets.datasetId });
    if (written.length > 0) await notify(tx.db, "dataset", workspaceId);
    return written.length > 0;
  });
}
