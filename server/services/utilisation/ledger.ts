/** The account of GPU time straight from the ledger: exact for any span, and as slow as the span is full of leases. */
import { type SQL, sql } from "drizzle-orm";

export type Span = { from: Date; to: Date };
/** What is looked at; capacity can be told by type alone. */
export type Filter = { gpuType?: string; teamId?: string; userId?: string; workspaceId?: string };

/** Whether one person or workspace is asked for, of whom the sums by team know nothing. */
export const isNarrow = ({ userId, workspaceId }: Filter) => userId !== undefined || workspaceId !== undefined;

export const HOUR_S = 3600;
/** What is told of whoever held something, in the order of its columns (server/db/schema/usage.ts). */
export const AMOUNTS = [
  "held",
  "used",
  "effective",
  "known",
  "estimated",
  "borrowed",
  "promised",
  "delivered",
] as const;
const EPOCH = sql.raw(`timestamptz 'epoch'`);
const at = (date: Date) => sql`${date.toISOString()}::timestamptz`;
const microseconds = (
  from: SQL,
  to: SQL, // date_part counts in double precision, which is exact to the microsecond for years; extract is several times slower.
) => sql`greatest(0, round(date_part('epoch', ${to} - ${from}) * 1000000))::bigint`;
/** The starts of the steps that a stretch has a part in; one that ends where a step begins is not in that step. */
const steps = (step: SQL) =>
  sql`generate_series(date_bin(${step}, s, ${EPOCH}), e - interval '1 microsecond', ${step})`;
const stepOf = (seconds: number) => sql.raw(`interval '${Math.floor(seconds)} seconds'`);

/**
 * A query for who held what in a span, split by steps of `seconds`, a divisor of the hour: `at` (the step's start),
 * `gpu_type`, `team_id`, `user_id`, `workspace_id`, `state` of the device, and the `AMOUNTS`. A lease's work in an hour
 * is spread evenly over the time that it held in that hour, and is at most all of it. Its time on a device that the pool
 * did not know counts for nobody.
 */
export function heldInLedger(span: Span, filter: Filter, seconds: number, now: Date): SQL {
  const { gpuType, teamId, userId, workspaceId } = filter;
  const whole = wholeHours(span);
  const step = stepOf(seconds);
  return sql`
    select at, gpu_type, team_id, user_id, workspace_id, state, milli * inside as held,
      round(milli * inside * coalesce(worked, 0))::bigint as used,
      round(milli * inside * coalesce(least(active, worked * known), 0))::bigint as effective,
      round(milli * inside * coalesce(worked * known, 0))::bigint as known,
      round(milli * inside * coalesce(least(active, worked * known) * estimated, 0))::bigint as estimated,
      milli * inside * borrowed as borrowed,
      round(coalesce(w.promised_us, 0)::float8 * inside / greatest(1, of_lease))::bigint as promised,
      round(coalesce(w.delivered_us, 0)::float8 * inside / greatest(1, of_lease))::bigint as delivered
    from (
      select x.*, at, date_bin('1 hour', at, ${EPOCH}) as hour,
        (sum(${microseconds(sql`greatest(s, at)`, sql`least(e, at + ${step})`)})
          over (partition by lease_id, date_bin('1 hour', at, ${EPOCH})))::float8 as of_lease,
        ${microseconds(sql`greatest(s, at, ${at(span.from)})`, sql`least(e, at + ${step}, ${at(span.to)})`)} as inside
      from (
        select i.lease_id, i.team_id, i.user_id, l.workspace_id, l.borrowed, i.milli, g.gpu_type, d.state,
          greatest(i.started_at, d.started_at, ${at(whole.from)}) as s,
          least(coalesce(i.ended_at, ${at(now)}), coalesce(d.ended_at, ${at(now)}), ${at(whole.to)}) as e
        from (
          -- Planned alone (offset 0): for what the planner takes for many steps it would scan and sort the whole ledger
          -- in parallel, where an index has the few that held.
          select * from lease_intervals i
          where i.started_at < ${at(whole.to)} and (i.ended_at is null or i.ended_at > ${at(whole.from)})
            and ${is(sql`i.team_id`, teamId)} and ${is(sql`i.user_id`, userId)}
          offset 0
        ) i
        join leases l on l.id = i.lease_id
        join gpus g on g.id = i.gpu_id
        join device_intervals d on d.gpu_id = i.gpu_id and d.started_at < coalesce(i.ended_at, ${at(now)})
          and coalesce(d.ended_at, ${at(now)}) > i.started_at
        where ${is(sql`g.gpu_type`, gpuType)} and ${is(sql`l.workspace_id`, workspaceId)}
      ) x cross join lateral ${steps(step)} as series (at)
      where e > s
    ) y left join lateral (
      -- One look into the key for each: a plain join of what the planner takes for many steps reads all work there is.
      -- Parts: of the lease's time worked and active, of what it worked known, of what was active estimated.
      select promised_us, delivered_us, least(1, gpu_time_us / greatest(1, of_lease)) as worked,
        least(1, sm_active_us / greatest(1, of_lease)) as active,
        least(1, sm_known_us::float8 / greatest(1, gpu_time_us)) as known,
        least(1, sm_estimated_us::float8 / greatest(1, sm_active_us)) as estimated
      from lease_work k where k.lease_id = y.lease_id and k.hour = y.hour limit 1
    ) w on true
    where inside > 0`;
}

/** A query for how long devices were in each state, split by steps: `at`, `gpu_type`, `state`, `wall`. */
export function poolInLedger({ from, to }: Span, { gpuType }: Filter, seconds: number, now: Date): SQL {
  const step = stepOf(seconds);
  return sql`
    select at, gpu_type, state, sum(${microseconds(sql`greatest(s, at)`, sql`least(e, at + ${step})`)})::bigint as wall
    from (
      select g.gpu_type, d.state, greatest(d.started_at, ${at(from)}) as s,
        least(coalesce(d.ended_at, ${at(now)}), ${at(to)}) as e
      from device_intervals d join gpus g on g.id = d.gpu_id
      where d.started_at < ${at(to)} and (d.ended_at is null or d.ended_at > ${at(from)})
        and ${is(sql`g.gpu_type`, gpuType)}
    ) x cross join lateral ${steps(step)} as series (at)
    where e > s group by 1, 2, 3`;
}

/**
 * A query for what was stranded in a span, split by steps: `at`, `stranded`. What a row tells (a look, or an hour that is
 * older than two days) is spread evenly over its time.
 */
export function strandedIn({ from, to }: Span, { gpuType }: Filter, seconds: number): SQL {
  const step = stepOf(seconds);
  const measured = microseconds(sql`h.at`, sql`h.until`);
  return sql`
    select series.at, h.stranded::float8 / greatest(1, ${measured}) *
      ${microseconds(sql`greatest(s, series.at)`, sql`least(e, series.at + ${step})`)} as stranded
    from stranded_hours h
      cross join lateral (select greatest(h.at, ${at(from)}) as s, least(h.until, ${at(to)}) as e) x
      cross join lateral ${steps(step)} as series (at)
    where h.at > ${at(from)} - interval '1 hour' and h.at < ${at(to)} and e > s and ${is(sql`h.gpu_type`, gpuType)}`;
}

/** A column has a value, where one is asked for. */
export const is = (column: SQL, value: string | undefined): SQL =>
  value === undefined ? sql`true` : sql`${column} = ${value}`;

/** The start of the step that an instant is in, and of the next unless it is one itself. */
export const floorTo = (seconds: number, date: Date): Date =>
  new Date(Math.floor(date.getTime() / (seconds * 1000)) * seconds * 1000);
export const ceilTo = (seconds: number, date: Date): Date =>
  new Date(Math.ceil(date.getTime() / (seconds * 1000)) * seconds * 1000);

const wholeHours = ({ from, to }: Span): Span => ({ from: floorTo(HOUR_S, from), to: ceilTo(HOUR_S, to) });
