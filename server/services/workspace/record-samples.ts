import { lt, sql } from "drizzle-orm";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import { workspaceSamples } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";

/** Samples are kept for so long. */
const KEPT_MS = 24 * 3600_000;

export type WorkspaceSample = {
  workspaceId: string;
  generation: number;
  /** null: its launcher cannot measure it. */
  cpuMilli: number | null;
  memoryBytes: number | null;
  /** The newest sign of somebody or something at work there. */
  activeAt: Date | null;
};

/** Takes one round of measuring: the newest figures to the rows, the samples beside them, what is old away. */
export async function recordSamples(ctx: Context, samples: readonly WorkspaceSample[]): Promise<void> {
  authorize(ctx.principal, "workspace.measure");
  const now = ctx.now();
  await inTransaction(ctx, async (tx) => {
    await tx.db.delete(workspaceSamples).where(lt(workspaceSamples.at, new Date(now.getTime() - KEPT_MS)));
    if (samples.length === 0) return;
    const rows = JSON.stringify(samples);
    // One statement for all: the figures of a run that is over meanwhile are thrown away.
    await tx.db.execute(sql`
      with measured as (
        select * from json_to_recordset(${rows}::json)
          as m("workspaceId" text, generation int, "cpuMilli" int, "memoryBytes" bigint, "activeAt" timestamptz)
      ), known as (
        update workspaces w set cpu_milli = m."cpuMilli", memory_bytes = m."memoryBytes",
          last_activity_at = greatest(w.last_activity_at, m."activeAt")
        from measured m
        where w.id = m."workspaceId" and w.generation = m.generation and w.observed = 'running'
        returning w.id, m."cpuMilli", m."memoryBytes"
      )
      insert into workspace_samples (workspace_id, at, cpu_milli, memory_bytes)
      select id, ${now.toISOString()}::timestamptz, "cpuMilli", "memoryBytes" from known
      where "cpuMilli" is not null`);
    await notify(tx.db, "usage", "workspaces");
  });
}
