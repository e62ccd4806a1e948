import { and, asc, eq, lt, or, sql } from "drizzle-orm";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import { datasetSource } from "#server/contracts/dataset.ts";
import { datasets, teams } from "#server/db/schema/index.ts";
import { messageFor } from "#server/errors.ts";
import { type FolderSize, measureFolder, registeredFolder } from "#server/launchers/local/dataset-folder.ts";
import { notify } from "#server/live.ts";

/** A folder is measured so often. */
const EVERY_MS = 3_600_000;

/**
 * Measures the folder that has waited longest, if one is due, and says whether there was one. For the machine that the
 * folders lie on.
 */
export async function recordSize(ctx: Context, signal?: AbortSignal): Promise<boolean> {
  authorize(ctx.principal, "dataset.record-size");
  const due = new Date(ctx.now().getTime() - EVERY_MS).toISOString();
  const [next] = await ctx.db
    .select({ row: datasets, team: teams.name })
    .from(datasets)
    .leftJoin(teams, eq(teams.id, datasets.teamId))
    .where(
      and(
        sql`${datasets.source}->>'kind' = 'folder'`,
        or(sql`${datasets.measuredAt} is null`, lt(datasets.measuredAt, sql`${due}::timestamptz`)),
      ),
    )
    .orderBy(sql`${datasets.measuredAt} asc nulls first`, asc(datasets.id))
    .limit(1);
  if (next === undefined) return false;
  const { row, team } = next;
  const measured = await measureSource(row.source, team ?? undefined, signal);
  signal?.throwIfAborted();
  await inTransaction(ctx, async (tx) => {
    const size =
      "reason" in measured
        ? { measureMessage: measured.reason }
        : { sizeBytes: measured.bytes, fileCount: measured.files, measureMessage: null };
    await tx.db
      .update(datasets)
      .set({ ...size, measuredAt: tx.now() })
      .where(eq(datasets.id, row.id));
    await notify(tx.db, "dataset", row.id);
  });
  return true;
}

async function measureSource(
  raw: unknown,
  team: string | undefined,
  signal?: AbortSignal,
): Promise<FolderSize | { reason: string }> {
  const source = datasetSource.parse(raw);
  if (source.kind !== "folder") return { reason: "Only folders are measured." };
  try {
    return await measureFolder(await registeredFolder(source.path, team), signal);
  } catch (error) {
    return { reason: messageFor(error) };
  }
}
