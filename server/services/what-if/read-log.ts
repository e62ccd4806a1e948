import { sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import type { Time } from "#server/scheduler/simulate/outcome.ts";
import type { Kind, Needs } from "#server/scheduler/types.ts";

/** A request as the log has it, with its lease when it was granted one. Times are milliseconds since 1970. */
export type Logged = {
  id: string;
  /** The process that asked. */
  owner: string;
  teamId: string;
  userId: string;
  milli: number;
  memoryBytes: number;
  guaranteedOnly: number;
  rank: number;
  kind: Kind;
  maxDevices: number;
  needs: Needs | null;
  forSeconds: number;
  state: "queued" | "granted" | "refused" | "cancelled" | "expired";
  createdAt: number;
  decidedAt: number | null;
  waitUntil: number;
  /** Of all parts of the lease together. */
  heldMilli: number | null;
  grantedAt: number | null;
  /** Null while it runs. */
  endedAt: number | null;
  expiresAt: number | null;
  endReason: string | null;
};

/** So many are read at a time, so that a large answer never holds up whoever else the process serves. */
const BATCH = 2_000;
/** What ran or waited when a time began was asked for so long before at most. */
const CARRIED_MS = 31 * 24 * 3_600_000;

const ms = (column: string) => sql.raw(`floor(extract(epoch from ${column}) * 1000)::float8`);

/** Requests of a GPU type made in this time, and those before that ran or waited when it began; by age, at most `most`. */
export async function readLog(ctx: Context, gpuType: string, time: Time, most: number): Promise<Logged[]> {
  const rows: Logged[] = [];
  const text = (at: number) => sql`${new Date(at).toISOString()}::timestamptz`;
  let after = sql`true`;
  while (rows.length <= most) {
    const batch = await ctx.db.execute<Logged & { cursor: string }>(sql`
      select r.id, concat_ws('/', r.workspace_id, r.owner->>'pid', r.owner->>'startTime') as owner,
        r.team_id as "teamId", r.user_id as "userId", r.milli, r.memory_bytes::float8 as "memoryBytes",
        r.guaranteed_only as "guaranteedOnly", r.rank, r.kind, r.max_devices as "maxDevices", r.needs,
        r.for_seconds as "forSeconds", r.state, ${ms("r.created_at")} as "createdAt",
        ${ms("r.decided_at")} as "decidedAt", ${ms("r.wait_until")} as "waitUntil", l.milli::float8 as "heldMilli", ${ms("l.granted_at")} as "grantedAt",
        ${ms("l.ended_at")} as "endedAt", ${ms("l.expires_at")} as "expiresAt", l.end_reason as "endReason",
        r.created_at::text as cursor
      from lease_requests r
      left join lateral (
        select sum(milli) as milli, min(granted_at) as granted_at, max(expires_at) as expires_at,
          case when bool_and(ended_at is not null) then max(ended_at) end as ended_at, max(end_reason) as end_reason
        from leases where request_id = r.id having count(*) > 0
      ) l on r.state = 'granted'
      where r.gpu_type = ${gpuType} and ${after}
        and r.created_at >= ${text(time.from - CARRIED_MS)} and r.created_at < ${text(time.to)}
        and (r.created_at >= ${text(time.from)} or coalesce(r.decided_at, 'infinity') > ${text(time.from)}
          or (l.granted_at is not null and coalesce(l.ended_at, 'infinity') > ${text(time.from)}))
      order by r.created_at, r.id limit ${BATCH}`);
    rows.push(...batch.map(({ cursor: _, ...row }) => row));
    const last = batch.at(-1);
    if (last === undefined || batch.length < BATCH) return rows;
    after = sql`(r.created_at, r.id) > (${last.cursor}::timestamptz, ${last.id})`;
  }
  return rows;
}
