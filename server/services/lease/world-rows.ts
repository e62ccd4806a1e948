/**
 * Everything that one GPU type's decisions stand on, in one statement: under the type's lock a round reads the tables
 * once, whatever it decides on.
 */
import { type SQL, sql } from "drizzle-orm";
import type { LeaseOwner } from "#server/contracts/lease.ts";
import type { Database, Transaction } from "#server/db/client.ts";
import type { gpuServers, gpus } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { monthOf } from "#server/scheduler/budget.ts";
import type { CoTenancy, Kind, Stop } from "#server/scheduler/types.ts";
import { type QueueColumns, type QueueIds, queueColumns, queueIds, waitsFor } from "./world-queue.ts";

type Db = Database | Transaction;

/** Times are texts as PostgreSQL writes them in JSON. */
export type DeviceRow = {
  id: string;
  name: string;
  state: (typeof gpus.$inferSelect)["state"];
  drained: boolean;
  memoryBytes: number;
  linkGroup: string | null;
  cudaVersion: number | null;
  driverVersion: string | null;
  serverId: string;
  serverName: string;
  serverState: (typeof gpuServers.$inferSelect)["state"];
  zone: string | null;
  rttUs: number | null;
  /** Of its server: what a lease on it is granted under. */
  epoch: number;
};

export type HoldingRow = {
  id: string;
  requestId: string;
  teamId: string;
  userId: string;
  who: string;
  gpuId: string;
  milli: number;
  memoryBytes: number;
  borrowed: number;
  guaranteedOnly: number;
  owner: LeaseOwner;
  state: string;
  grantedAt: string;
  expiresAt: string;
  usageAt: string | null;
  noticeFor: string | null;
  noticeAt: string | null;
  releaseAt: string | null;
};

export type QuotaRow = {
  teamId: string;
  teamName: string;
  guaranteedMilli: number;
  limitMilli: number;
  weight: number;
  priority: number;
  personMilli: number | null;
  largestMilli: number | null;
  budgetMilliHours: number | null;
  /** GPU-hours of this month so far, thousandths, from the ledger; only where there is a budget. */
  spentMilliHours: number | null;
  coTenancy: CoTenancy | null;
  idleSeconds: number | null;
  minRunSeconds: number | null;
  noticeSeconds: number | null;
  usage: number | null;
  usageAt: string | null;
};

type Amounts = { guaranteedMilli: number; limitMilli: number };

export type WorldRows<Queue = QueueColumns> = {
  devices: DeviceRow[];
  holdings: HoldingRow[];
  queue: Queue;
  quotas: QuotaRow[];
  windows: (Amounts & { teamId: string; from: number; to: number })[];
  additions: (Amounts & { teamId: string; startsAt: string; endsAt: string })[];
  reservations: {
    id: string;
    teamId: string;
    userId: string | null;
    who: string | null;
    milli: number;
    unitMilli: number;
    startsAt: string;
    endsAt: string;
  }[];
  stops: { scope: Stop["scope"]; subjectId: string | null; reason: string }[];
  kinds: { from: number; to: number; kind: Kind }[];
  /** By whose clocks `windows` and `kinds` count their weeks. */
  timeZone: string;
};

const HOLDINGS = sql`(select coalesce(json_agg(t), '[]') from (
        select l.id, l.request_id as "requestId", l.team_id as "teamId", l.user_id as "userId", u.name as who,
          l.gpu_id as "gpuId", l.milli, l.memory_bytes as "memoryBytes", l.borrowed,
          l.guaranteed_only as "guaranteedOnly", l.owner, l.state, l.granted_at as "grantedAt",
          l.expires_at as "expiresAt", l.usage_at as "usageAt", l.notice_for as "noticeFor",
          l.notice_at as "noticeAt", l.release_at as "releaseAt"
        from open_leases(ask.type) l join users u on u.id = l.user_id) t)`;
const WAITS = waitsFor(sql.raw("ask.type"));

/** The rows as of `now`. Devices are those of the type, and those that are still pinned by a waiting request. */
export async function readWorldRows(db: Db, gpuType: string, now: Date): Promise<WorldRows> {
  return await readRows(db, gpuType, now, { holdings: HOLDINGS, queue: queueColumns(WAITS) });
}

/** The same without what those who wait have asked, for whoever knows that: a small part of the work. */
export async function readRowsOfKnown(db: Db, gpuType: string, now: Date): Promise<WorldRows<QueueIds>> {
  return await readRows(db, gpuType, now, { holdings: HOLDINGS, queue: queueIds(WAITS) });
}

/** The same as if nobody held anything and nobody waited: for questions about devices and quotas. */
export async function readRowsOfNobody(db: Db, gpuType: string, now: Date): Promise<WorldRows> {
  return await readRows(db, gpuType, now, { holdings: sql`'[]'::json`, queue: sql`'{}'::json` });
}

async function readRows<Queue>(
  db: Db,
  gpuType: string,
  now: Date,
  { holdings, queue }: { holdings: SQL; queue: SQL },
): Promise<WorldRows<Queue>> {
  const at = now.toISOString();
  const month = new Date(monthOf(now.getTime()).from).toISOString();
  const [row] = await db.execute<{ world: Omit<WorldRows<Queue>, "timeZone"> }>(sql`
    with ask as materialized (select ${gpuType}::text as type, ${at}::timestamptz as at, ${month}::timestamptz as month)
    select json_build_object(
      'devices', (select coalesce(json_agg(t), '[]') from (
        select g.id, g.name, g.state, g.drained_at is not null as drained, g.memory_bytes as "memoryBytes", g.link_group as "linkGroup",
          (g.profile->>'driverVersion')::int as "cudaVersion", g.profile->>'driver' as "driverVersion", s.id as "serverId", s.name as "serverName",
          s.state as "serverState", s.zone, s.rtt_us as "rttUs", s.epoch
        from gpus g join gpu_servers s on s.id = g.server_id
        where g.gpu_type = ask.type and (s.state <> 'removed' or g.id in (
          select pinned_gpu_id from lease_requests where gpu_type = ask.type and state = 'queued'))) t),
      'holdings', ${holdings},
      'queue', ${queue},
      'quotas', (select coalesce(json_agg(t), '[]') from (
        select q.team_id as "teamId", n.name as "teamName", q.guaranteed_milli as "guaranteedMilli",
          q.limit_milli as "limitMilli", q.weight, q.priority, q.person_milli as "personMilli",
          q.largest_milli as "largestMilli", q.budget_milli_hours as "budgetMilliHours",
          case when q.budget_milli_hours is not null then (
            select coalesce(floor(sum(i.milli * greatest(0,
              extract(epoch from (coalesce(i.ended_at, ask.at) - greatest(i.started_at, ask.month))) * 1000)) / 3600000), 0)
            from lease_intervals i
            where i.team_id = q.team_id and i.gpu_type = ask.type and coalesce(i.ended_at, ask.at) > ask.month
          ) end as "spentMilliHours",
          p.co_tenancy as "coTenancy", p.idle_seconds as "idleSeconds", p.min_run_seconds as "minRunSeconds",
          p.notice_seconds as "noticeSeconds", v.amount as usage, v.at as "usageAt"
        from quotas q join teams n on n.id = q.team_id
        left join team_policies p on p.team_id = q.team_id
        left join team_usage v on v.team_id = q.team_id and v.gpu_type = q.gpu_type
        where q.gpu_type = ask.type) t),
      'windows', (select coalesce(json_agg(t), '[]') from (
        select team_id as "teamId", from_minute as "from", to_minute as "to", guaranteed_milli as "guaranteedMilli",
          limit_milli as "limitMilli"
        from quota_windows where gpu_type = ask.type order by id) t),
      'additions', (select coalesce(json_agg(t), '[]') from (
        select team_id as "teamId", guaranteed_milli as "guaranteedMilli", limit_milli as "limitMilli",
          starts_at as "startsAt", ends_at as "endsAt"
        from quota_requests where gpu_type = ask.type and state = 'approved' and ends_at > ask.at) t),
      'reservations', (select coalesce(json_agg(t), '[]') from (
        select v.id, v.team_id as "teamId", v.user_id as "userId", u.name as who, v.milli, v.unit_milli as "unitMilli",
          v.starts_at as "startsAt", v.ends_at as "endsAt"
        from reservations v left join users u on u.id = v.user_id
        where v.gpu_type = ask.type and v.ends_at > ask.at) t),
      'stops', (select coalesce(json_agg(t), '[]') from (
        select scope, subject_id as "subjectId", reason from stop_switches where lifted_at is null) t),
      'kinds', (select coalesce(json_agg(t), '[]') from (
        select from_minute as "from", to_minute as "to", kind from kind_windows where gpu_type = ask.type) t)
    ) as world from ask`);
  if (row === undefined) throw new Error("the world of a GPU type is one row");
  return { ...row.world, timeZone: env().SLUICE_TIME_ZONE };
}
