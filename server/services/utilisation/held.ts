/** The SQL that every account of GPU time stands on: who held what, on a device in which state, and for how much of it. */
import { type SQL, sql } from "drizzle-orm";

export type Span = { from: Date; to: Date };
/** What is looked at; capacity can be told by type alone. */
export type Filter = { gpuType?: string; teamId?: string; userId?: string };

/**
 * Two tables for a `with`, clipped to the span. `states`: a device in a state from `s` to `e`. `held`: a lease on such
 * a stretch, with `milli`, `used`, the part of its time in which the GPU worked, and `promised` and `delivered`, compute
 * in microseconds a second: what gpud measured for a lease is spread evenly over its time. A lease's time on a device that the pool did not know counts for nobody.
 */
export function heldTables({ from, to }: Span, { gpuType, teamId, userId }: Filter): SQL {
  const [start, end] = [sql`${from.toISOString()}::timestamptz`, sql`${to.toISOString()}::timestamptz`];
  const typeIs = gpuType === undefined ? sql`true` : sql`g.gpu_type = ${gpuType}`;
  const teamIs = teamId === undefined ? sql`true` : sql`i.team_id = ${teamId}`;
  const userIs = userId === undefined ? sql`true` : sql`i.user_id = ${userId}`;
  return sql`
    states as (
      select d.gpu_id, g.gpu_type, d.state,
        greatest(d.started_at, ${start}) as s, least(coalesce(d.ended_at, ${end}), ${end}) as e
      from device_intervals d join gpus g on g.id = d.gpu_id
      where d.started_at < ${end} and (d.ended_at is null or d.ended_at > ${start}) and ${typeIs}
    ), held as (
      select i.team_id, i.user_id, st.gpu_type, l.workspace_id, l.borrowed, st.state, i.milli,
        least(1, l.gpu_time_us / 1e6 / greatest(0.001, l.seconds)) as used,
        l.promised_us / greatest(0.001, l.seconds) as promised, l.delivered_us / greatest(0.001, l.seconds) as delivered,
        greatest(i.started_at, st.s) as s, least(coalesce(i.ended_at, ${end}), st.e) as e
      from lease_intervals i
      join (
        select id, workspace_id, borrowed, gpu_time_us, promised_us, delivered_us,
          extract(epoch from coalesce(ended_at, ${end}) - granted_at)::float8 as seconds
        from leases
      ) l on l.id = i.lease_id
      join states st on st.gpu_id = i.gpu_id and i.started_at < st.e and coalesce(i.ended_at, ${end}) > st.s
      where i.started_at < ${end} and (i.ended_at is null or i.ended_at > ${start}) and ${teamIs} and ${userIs}
    )`;
}

/** Length of a row's own stretch, seconds. */
export const ownSeconds: SQL = sql`extract(epoch from e - s)::float8`;
