/** The two halves of a lease's end: gpud is told (`ending`, the amount still counts), gpud has confirmed (`ended`). */
import { type SQL, sql } from "drizzle-orm";
import { actorOf, type Context } from "#server/context.ts";
import { among } from "#server/db/among.ts";
import type { Database, Transaction } from "#server/db/client.ts";
import { notified } from "#server/live.ts";
import type { LeaseRow } from "./view.ts";

export type EndReason = NonNullable<LeaseRow["endReason"]>;
/** With the type whose queue hears of it. */
export type ClosedRow = EndedRow & Pick<LeaseRow, "gpuType">;
export type HowToEnd = { reason: EndReason; mode: "park" | "kill"; note?: string };

/** A part of a lease that ends, as the audit log names it. */
export type EndedRow = Pick<LeaseRow, "id" | "workspaceId" | "gpuId" | "milli" | "teamId">;

/** One lease that somebody ends; with `workspaceId` only if it is that workspace's. */
export type Ending = { by: Context; leaseId: string; workspaceId?: string; how: HowToEnd };

/**
 * Marks leases `ending`; the broker that holds their gpud's control connection hears of it (topic `ending`) and tells
 * gpud. Needs no lock: what they hold still counts until gpud has confirmed. A lease of several GPUs ends as a whole.
 * Nothing stays parked on a server whose holders were told that it goes out of service: they would be sent back there for
 * it, where nobody may borrow. All of it is one statement. Returns all rows that it changed.
 */
export async function beginEnds(db: Database | Transaction, endings: readonly Ending[]): Promise<EndedRow[]> {
  if (endings.length === 0) return [];
  const asked = JSON.stringify(
    endings.map(({ by, leaseId, workspaceId, how }) => {
      return { lease: leaseId, workspace: workspaceId, ...doneBy(by), ...how };
    }),
  );
  const ids = JSON.stringify(endings.map(({ leaseId }) => leaseId));
  // Two that end one lease at a time lock its rows in one order, and never wait for each other.
  const rows = await db.execute<EndedRow>(sql`
    with asked as (
      select distinct on (l.request_id) l.request_id, a.* from json_to_recordset(${asked}::json)
        as a (lease text, workspace text, reason text, mode text, note text, ${doneByColumns})
      join leases l on l.id = a.lease and l.workspace_id = coalesce(a.workspace, l.workspace_id)
      where ${among(sql`l.id`, ids)}
      order by l.request_id, a.lease
    ),
    parts as (
      select l.id as part, l.notice_for is null and l.release_at is not null as leaves, asked.* from leases l join asked on asked.request_id = l.request_id
      where l.request_id = any(array(select request_id from asked))
        and l.state in ('granted', 'active', 'unreachable') order by l.id for update of l
    ),
    changed as (
      update leases l set state = 'ending', ending_at = parts.at,
        end_mode = case when l.request_id in (select request_id from parts where leaves) then 'kill' else parts.mode end,
        end_reason = parts.reason, end_note = parts.note
      from parts where l.id = parts.part and l.id = any(array(select part from parts))
      returning l.*, parts.*
    ),
    audited as (${auditOfEnds(sql`changed`)})
    select id, workspace_id as "workspaceId", gpu_id as "gpuId", milli, team_id as "teamId",
      ${notified("lease", sql`id`)}, ${notified("ending", sql`server_id`)}, ${notified("audit", sql`id`)}
    from changed`);
  return [...rows];
}

/** Marks these leases `ending`, all for one reason. */
export async function beginEnd(
  ctx: Context & { db: Transaction },
  leaseIds: readonly string[],
  how: HowToEnd,
): Promise<EndedRow[]> {
  return await beginEnds(
    ctx.db,
    leaseIds.map((leaseId) => ({ by: ctx, leaseId, how })),
  );
}

/** A lease that is over, and what gpud said of its end; with `serverId` only if it is that server's. */
export type Closing = { by: Context; leaseId: string; serverId?: string; parkedBytes?: number; gpuTimeUs?: number };

/**
 * Closes leases: state and ledger interval. `how` is for those that end without having been `ending`; the other parts of
 * a lease of several GPUs are told to end. Needs no lock: it only makes room, and the caller advances the queues of their
 * types afterwards. All of it is one statement. Returns those that it closed.
 */
export async function closeLeases(
  db: Database | Transaction,
  closings: readonly Closing[],
  how: HowToEnd,
): Promise<ClosedRow[]> {
  if (closings.length === 0) return [];
  const said = JSON.stringify(
    closings.map(({ by, leaseId, serverId, parkedBytes = 0, gpuTimeUs = 0 }) => {
      return { lease: leaseId, server: serverId, parked: parkedBytes, worked: gpuTimeUs, ...doneBy(by) };
    }),
  );
  const ids = JSON.stringify(closings.map(({ leaseId }) => leaseId));
  const changed = await db.execute<ClosedRow & { closed: boolean }>(sql`
    with said as (
      select * from json_to_recordset(${said}::json)
        as t (lease text, server text, parked bigint, worked bigint, ${doneByColumns})
    ),
    parts as (
      select l.id as part, l.request_id as request, l.server_id as place, l.state as was from leases l
      where l.request_id = any(array(select request_id from leases where ${among(sql`id`, ids)}))
        and l.state <> 'ended' order by l.id for update of l
    ),
    held as (
      select parts.*, said.* from parts
      join said on said.lease = parts.part and parts.place = coalesce(said.server, parts.place)
    ),
    -- The other parts of a lease of several GPUs are of no use alone.
    rest as (
      select distinct on (parts.part) parts.part as other, held.* from parts join held using (request)
      where parts.was <> 'ending' and parts.part not in (select lease from held) order by parts.part
    ),
    over as (
      update lease_intervals i set ended_at = held.at from held
      -- Written so that no index of what has not ended is asked: most of its entries are of rows that have.
      where i.lease_id = held.lease and coalesce(i.ended_at, 'infinity') = 'infinity'
        and i.lease_id = any(array(select lease from held))
    ),
    closed as (
      update leases l set state = 'ended', ended_at = held.at,
        end_reason = case when held.was = 'ending' then l.end_reason else ${how.reason}::text end,
        end_note = case when held.was = 'ending' then l.end_note else ${how.note ?? null}::text end,
        parked_bytes = held.parked, used_memory_bytes = 0, gpu_time_us = greatest(l.gpu_time_us, held.worked)
      from held where l.id = held.lease and l.id = any(array(select lease from held))
      returning l.*, was, at, actor_kind, actor_id, trace_id, ${how.reason}::text as reason
    ),
    ending as (
      update leases l set state = 'ending', ending_at = rest.at, end_mode = 'kill', end_reason = ${how.reason}::text,
        end_note = ${how.note ?? null}::text
      from rest where l.id = rest.other and l.id = any(array(select other from rest))
      returning l.*, was, at, actor_kind, actor_id, trace_id, ${how.reason}::text as reason
    ),
    changed as (select * from closed union all select * from ending),
    unforeseen as (select * from changed where was <> 'ending'),
    audited as (${auditOfEnds(sql`unforeseen`)})
    select id, workspace_id as "workspaceId", gpu_id as "gpuId", milli, team_id as "teamId", gpu_type as "gpuType",
      state = 'ended' as closed, ${notified("lease", sql`id`)},
      case when state = 'ended' then ${notified("pool", sql`gpu_id`)} else ${notified("ending", sql`server_id`)} end,
      case when was <> 'ending' then ${notified("audit", sql`id`)} end
    from changed`);
  return changed.filter(({ closed }) => closed);
}

/** When, by whom and under which trace id something is done, for a record of `doneByColumns`. */
function doneBy({ principal, now, traceId }: Context) {
  const { kind, id } = actorOf(principal);
  return { at: now().toISOString(), actor_kind: kind, actor_id: id, trace_id: traceId };
}

const doneByColumns = sql.raw("at timestamptz, actor_kind text, actor_id text, trace_id text");

/** The audit log's entries of leases that end: rows with the lease's columns, `reason`, and `doneByColumns`. */
function auditOfEnds(rows: SQL): SQL {
  return sql`
    insert into audit_events (at, actor_kind, actor_id, trace_id, action, subject, team_id, detail)
    select at, actor_kind, actor_id, trace_id, 'lease.end', id, team_id, jsonb_build_object(
      'reason', reason, 'workspaceId', workspace_id, 'gpuId', gpu_id, 'milli', milli) from ${rows}`;
}

/** The sentence that a client process gets when its lease ends for this reason. */
export function endSentence(reason: EndReason | null, note: string | null): string {
  const again = "Run %gpu attach to borrow one again.";
  const detail = note === null ? "" : ` (${note})`;
  switch (reason) {
    case "given back":
      return `This GPU was given back. ${again}`;
    case "idle":
      return `This GPU was given back because nothing ran on it. ${again}`;
    case "time up":
      return `The time of this GPU is up. ${again}`;
    case "taken back":
      return note === null
        ? `This GPU was taken back by the team that it was borrowed from. ${again}`
        : `This GPU was taken back: ${note}. ${again}`;
    case "ended by an admin":
      return `This GPU was ended by an admin${detail}. ${again}`;
    case "owner gone":
      return `This GPU was released because its notebook was gone. ${again}`;
    case "never used":
      return `This GPU was released because nothing connected to it within 60 s. ${again}`;
    case "workspace stopped":
      return "This GPU was released because the workspace was stopped.";
    case "server lost":
    case null:
      return `The GPU server was lost${detail}. ${again}`;
  }
}
