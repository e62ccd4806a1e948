import { sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import {
  type WorkspaceSamples,
  type WorkspaceSamplesInput,
  workspaceSamplesInput,
} from "#server/contracts/workspace.ts";
import { parse } from "#server/parse.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";

/** A chart has room for so many points. */
const MOST_POINTS = 240;

/** Processor time and memory of a workspace's processes over the last minutes, in means of equal stretches. */
export async function samples(ctx: Context, raw: WorkspaceSamplesInput): Promise<WorkspaceSamples> {
  const { id, minutes } = parse(workspaceSamplesInput, raw);
  await loadWorkspace(ctx, id, "workspace.read");
  const to = ctx.now();
  const from = new Date(to.getTime() - minutes * 60_000);
  const stretch = Math.max(30, Math.ceil((minutes * 60) / MOST_POINTS));
  const rows = await ctx.db.execute<{ at: string; cpu: number; memory: string }>(sql`
    select to_char(date_bin(make_interval(secs => ${stretch}), at, ${from.toISOString()}::timestamptz) at time zone 'utc',
        'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at,
      round(avg(cpu_milli))::int as cpu, round(avg(memory_bytes))::bigint as memory
    from workspace_samples
    where workspace_id = ${id} and at > ${from.toISOString()}::timestamptz
    group by 1 order by 1`);
  return {
    from: from.toISOString(),
    to: to.toISOString(),
    samples: [...rows].map((row) => ({ at: row.at, cpuMilli: row.cpu, memoryBytes: Number(row.memory) })),
  };
}
