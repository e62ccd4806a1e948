import { type SQL, sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import {
  type WorkspaceSamples,
  type WorkspaceSamplesInput,
  workspaceSamplesInput,
} from "#server/contracts/workspace.ts";
import { parse } from "#server/parse.ts";
import { WHOLE } from "#server/scheduler/amount.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";

/** A chart has room for so many points. */
const MOST_POINTS = 240;

/** A span that ends now, in equal stretches of so many seconds. */
type Stretches = { id: string; from: SQL; to: SQL; seconds: number };

/** Processor time, memory and GPU of a workspace over the last minutes, in means of equal stretches. */
export async function samples(ctx: Context, raw: WorkspaceSamplesInput): Promise<WorkspaceSamples> {
  const { id, minutes } = parse(workspaceSamplesInput, raw);
  await loadWorkspace(ctx, id, "workspace.read");
  const to = ctx.now();
  const from = new Date(to.getTime() - minutes * 60_000);
  const instant = (date: Date) => sql`${date.toISOString()}::timestamptz`;
  const seconds = Math.max(30, Math.ceil((minutes * 60) / MOST_POINTS));
  const stretches = { id, from: instant(from), to: instant(to), seconds };
  const [processes, gpu] = [await ofProcesses(ctx, stretches), await ofGpus(ctx, stretches)];
  return { from: from.toISOString(), to: to.toISOString(), samples: processes, gpu };
}

const iso = (at: SQL) => sql`to_char(${at} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

async function ofProcesses(ctx: Context, { id, from, seconds }: Stretches): Promise<WorkspaceSamples["samples"]> {
  const rows = await ctx.db.execute<{ at: string; cpu: number; memory: string }>(sql`
    select ${iso(sql`date_bin(make_interval(secs => ${seconds}), at, ${from})`)} as at,
      round(avg(cpu_milli))::int as cpu, round(avg(memory_bytes))::bigint as memory
    from workspace_samples
    where workspace_id = ${id} and at > ${from}
    group by 1 order by 1`);
  return [...rows].map((row) => ({ at: row.at, cpuMilli: row.cpu, memoryBytes: Number(row.memory) }));
}

/** What its leases held, from the ledger, and what they did with it, from gpud's samples. */
async function ofGpus(ctx: Context, { id, from, to, seconds }: Stretches): Promise<WorkspaceSamples["gpu"]> {
  const stretch = sql`make_interval(secs => ${seconds})`;
  const rows = await ctx.db.execute<{ at: string; held: number; used: number; memory: string }>(sql`
    with held as (
      select i.lease_id, i.milli, greatest(i.started_at, ${from}) as s, least(coalesce(i.ended_at, ${to}), ${to}) as e
      from leases l join lease_intervals i on i.lease_id = l.id
      where l.workspace_id = ${id} and (l.ended_at is null or l.ended_at > ${from})
        and i.started_at < ${to} and (i.ended_at is null or i.ended_at > ${from})
    ), by_lease as (
      select at, till, lease_id,
        sum(milli * date_part('epoch', least(e, till) - greatest(s, at))) / date_part('epoch', till - at) as held
      from (
        select at, least(at + ${stretch}, ${to}) as till
        from generate_series(${from}, ${to} - interval '1 millisecond', ${stretch}) as series (at)
      ) stretches join held on s < till and e > at
      group by at, till, lease_id
    )
    select ${iso(sql`at`)} as at, round(sum(held))::int as held,
      round(least(sum(held), sum(${WHOLE} * work.gpu_time / date_part('epoch', till - at))))::int as used,
      coalesce(sum(last.memory_bytes), 0)::bigint as memory
    from by_lease
    cross join lateral (
      select coalesce(sum(gpu_time_us), 0) / 1e6::float8 as gpu_time from usage_samples u
      where u.lease_id = by_lease.lease_id and u.at > by_lease.at and u.at <= till
    ) work
    left join lateral (
      select memory_bytes from usage_samples u where u.lease_id = by_lease.lease_id and u.at <= till
      order by u.at desc limit 1
    ) last on true
    group by at order by at`);
  return [...rows].map((row) => ({
    ...{ at: row.at, heldMilli: row.held, usedMilli: row.used, memoryBytes: Number(row.memory) },
  }));
}
