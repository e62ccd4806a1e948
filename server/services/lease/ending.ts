/** The two halves of a lease's end: gpud is told (`ending`, the amount still counts), gpud has confirmed (`ended`). */
import { sql } from "drizzle-orm";
import { type Context, record } from "#server/context.ts";
import type { Transaction } from "#server/db/client.ts";
import type { LeaseRow } from "./view.ts";

export type EndReason = NonNullable<LeaseRow["endReason"]>;
/** With the type whose queue hears of it. */
export type ClosedRow = EndedRow & Pick<LeaseRow, "gpuType">;
export type HowToEnd = { reason: EndReason; mode: "park" | "kill"; note?: string };

/** A part of a lease that ends, as the audit log names it. */
export type EndedRow = Pick<LeaseRow, "id" | "workspaceId" | "gpuId" | "milli" | "teamId">;

/** One lease that somebody ends. */
export type Ending = { by: Context; leaseId: string; how: HowToEnd };

/**
 * Marks leases `ending`; the broker that holds their gpud's control connection hears of it and tells gpud. Needs no
 * lock: what they hold still counts until gpud has confirmed. A lease of several GPUs ends as a whole. Returns all rows
 * that it changed.
 */
export async function beginEnds(db: Transaction, endings: readonly Ending[]): Promise<EndedRow[]> {
  if (endings.length === 0) return [];
  const asked = JSON.stringify(
    endings.map(({ by, leaseId, how }) => ({ lease: leaseId, at: by.now().toISOString(), ...how })),
  );
  // Two that end one lease at a time lock its rows in one order, and never wait for each other.
  const rows = await db.execute<EndedRow & { lease: string }>(sql`
    with asked as (
      select distinct on (l.request_id) l.request_id, a.*
      from json_to_recordset(${asked}::json) as a (lease text, at timestamptz, reason text, mode text, note text)
      join leases l on l.id = a.lease order by l.request_id, a.lease
    ),
    parts as (
      select l.id as part, asked.* from leases l join asked on asked.request_id = l.request_id
      where l.state in ('granted', 'active', 'unreachable') order by l.id for update of l
    )
    update leases l set state = 'ending', ending_at = parts.at, end_mode = parts.mode, end_reason = parts.reason,
      end_note = parts.note
    from parts where l.id = parts.part
    returning l.id, l.workspace_id as "workspaceId", l.gpu_id as "gpuId", l.milli, l.team_id as "teamId", parts.lease`);
  const byLease = new Map(endings.map((one) => [one.leaseId, one]));
  await record(
    db,
    rows.flatMap((row) => {
      const ending = byLease.get(row.lease);
      return ending === undefined ? [] : [{ by: ending.by, input: endEntry(row, ending.how.reason) }];
    }),
    rows.map(({ id }) => ({ topic: "lease" as const, id })),
  );
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

/** What gpud said of a lease's end. */
export type Closing = { parkedBytes: number; gpuTimeUs: number };

/**
 * Closes leases: state and ledger interval. `how` is for those that end without having been `ending`. Needs no lock: it
 * only makes room, and the caller advances the queues of their types afterwards. Returns those that it closed, as they
 * were before.
 */
export async function closeLeases(
  ctx: Context & { db: Transaction },
  leaseIds: readonly string[],
  how: HowToEnd,
  { closings = new Map(), serverId }: { closings?: ReadonlyMap<string, Closing>; serverId?: string } = {},
): Promise<ClosedRow[]> {
  if (leaseIds.length === 0) return [];
  const only = serverId === undefined ? sql`` : sql`and l.server_id = ${serverId}`;
  const before = await ctx.db.execute<ClosedRow & { was: string }>(sql`
    with said as (
      select * from json_to_recordset(${saidOf(leaseIds, closings)}::json) as t (id text, parked bigint, worked bigint)
    ),
    held as (
      select l.id, l.state, said.parked, said.worked from leases l join said on said.id = l.id
      where l.state <> 'ended' ${only} order by l.id for update of l
    ),
    over as (
      update lease_intervals i set ended_at = ${ctx.now().toISOString()}::timestamptz
      from held where i.lease_id = held.id and i.ended_at is null
    )
    update leases l set state = 'ended', ended_at = ${ctx.now().toISOString()}::timestamptz,
      end_reason = case when held.state = 'ending' then l.end_reason else ${how.reason}::text end,
      end_note = case when held.state = 'ending' then l.end_note else ${how.note ?? null}::text end,
      parked_bytes = held.parked, used_memory_bytes = 0, gpu_time_us = greatest(l.gpu_time_us, held.worked)
    from held where l.id = held.id
    returning l.id, l.workspace_id as "workspaceId", l.gpu_id as "gpuId", l.milli, l.team_id as "teamId",
      l.gpu_type as "gpuType", held.state as was`);
  if (before.length === 0) return [];
  await record(
    ctx.db,
    before.filter(({ was }) => was !== "ending").map((lease) => ({ by: ctx, input: endEntry(lease, how.reason) })),
    before.flatMap(({ id, gpuId }) => [
      { topic: "lease" as const, id },
      { topic: "pool" as const, id: gpuId },
    ]),
  );
  // The other parts of a lease of several GPUs are of no use alone.
  await beginEnd(
    ctx,
    before.map((lease) => lease.id),
    { ...how, mode: "kill" },
  );
  return [...before];
}

function saidOf(leaseIds: readonly string[], closings: ReadonlyMap<string, Closing>): string {
  return JSON.stringify(
    leaseIds.map((id) => ({
      id,
      parked: closings.get(id)?.parkedBytes ?? 0,
      worked: closings.get(id)?.gpuTimeUs ?? 0,
    })),
  );
}

function endEntry({ id, workspaceId, gpuId, milli, teamId }: EndedRow, reason: EndReason) {
  return { action: "lease.end", subject: id, teamId, detail: { reason, workspaceId, gpuId, milli } };
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
      return `This GPU was taken back by the team that it was borrowed from. ${again}`;
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
