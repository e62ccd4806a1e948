/** Loads what the scheduler decides on: one GPU type's devices, leases, quotas and queue. */
import { sql } from "drizzle-orm";
import type { Database, Transaction } from "#server/db/client.ts";
import type { leases } from "#server/db/schema/index.ts";
import { kindsAt } from "#server/scheduler/calendar.ts";
import { type Promises, promisesNow } from "#server/scheduler/share.ts";
import type { Holding, Reservation, Waiting, World } from "#server/scheduler/types.ts";
import { RECLAIM_POLICY } from "./policy.ts";
import { deviceFrom } from "./world-devices.ts";
import { queueBeside, queueFrom } from "./world-queue.ts";
import { quotasFrom } from "./world-quotas.ts";
import { type HoldingRow, readRowsOfKnown, readRowsOfNobody, readWorldRows, type WorldRows } from "./world-rows.ts";

const TYPE_LOCK = 7_411_010;

/**
 * Serialises decisions about one GPU type until the transaction ends: what is read after it is what is decided on.
 * Take it before any row of that type is written.
 */
export async function lockGpuType(tx: Transaction, gpuType: string): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(${TYPE_LOCK}, hashtext(${gpuType}))`);
}

/** Locks several types in one order, so that two transactions never wait for each other. */
export async function lockGpuTypes(tx: Transaction, gpuTypes: Iterable<string>): Promise<string[]> {
  const sorted = [...new Set(gpuTypes)].sort();
  for (const gpuType of sorted) await lockGpuType(tx, gpuType);
  return sorted;
}

/** The world of one GPU type. Consistent under `lockGpuType`; without it, good for showing only. */
export async function loadWorld(db: Database | Transaction, gpuType: string, now: Date): Promise<World> {
  return worldFrom(await readWorldRows(db, gpuType, now), gpuType, now);
}

/** The rules of one GPU type (quotas, budgets, stops, calendars): a world without those who hold something or wait. */
export async function loadRules(db: Database | Transaction, gpuType: string, now: Date): Promise<World> {
  return worldFrom(await readRowsOfNobody(db, gpuType, now), gpuType, now);
}

/** What is promised to teams of one GPU type now. */
export async function loadPromises(db: Database | Transaction, gpuType: string, now: Date): Promise<Promises> {
  return promisesNow(await loadRules(db, gpuType, now));
}

/** The world, where `known` are requests that were read before. */
export async function loadWorldBeside(
  db: Database | Transaction,
  gpuType: string,
  now: Date,
  known: ReadonlyMap<string, Waiting>,
): Promise<World> {
  const rows = await readRowsOfKnown(db, gpuType, now);
  return worldOf(rows, await queueBeside(db, rows.queue, known), gpuType, now);
}

/** The rows as the scheduler sees them. */
export function worldFrom(rows: WorldRows, gpuType: string, now: Date): World {
  return worldOf(rows, queueFrom(rows.queue), gpuType, now);
}

function worldOf(rows: Omit<WorldRows, "queue">, queue: Waiting[], gpuType: string, now: Date): World {
  const at = now.getTime();
  return {
    gpuType,
    now: at,
    devices: rows.devices.map(deviceFrom),
    holdings: rows.holdings.map(holdingFrom),
    quotas: quotasFrom(rows, at),
    queue,
    policy: RECLAIM_POLICY,
    stops: rows.stops.map(({ subjectId, ...rest }) => ({ ...rest, ...(subjectId === null ? {} : { subjectId }) })),
    reservations: rows.reservations.map(reservationFrom),
    open: kindsAt(rows.timeZone, rows.kinds, at),
  };
}

/** A reservation as the scheduler sees it. */
export function reservationFrom({
  startsAt,
  endsAt,
  userId,
  who,
  ...rest
}: WorldRows["reservations"][number]): Reservation {
  const whose = userId === null ? {} : { userId, who: who ?? "" };
  return { ...rest, ...whose, from: Date.parse(startsAt), to: Date.parse(endsAt) };
}

function holdingFrom(row: HoldingRow): Holding {
  const { requestId, teamId, userId, who, gpuId, milli, memoryBytes, noticeFor, noticeAt, releaseAt } = row;
  return {
    ...{ leaseId: row.id, groupId: requestId, teamId, userId, gpuId, milli, memoryBytes, who },
    borrowed: row.borrowed === 1,
    guaranteedOnly: row.guaranteedOnly === 1,
    grantedAt: Date.parse(row.grantedAt),
    expiresAt: Date.parse(row.expiresAt),
    ...(row.owner.label === undefined ? {} : { label: row.owner.label }),
    lastWorkAt: Date.parse(row.usageAt ?? row.grantedAt),
    ending: row.state === "ending",
    ...(noticeFor === null || noticeAt === null || releaseAt === null
      ? {}
      : { notice: { requestId: noticeFor, at: Date.parse(noticeAt), releaseAt: Date.parse(releaseAt) } }),
  };
}

/** A lease that has just been granted, as the scheduler sees it. */
export function holdingOf(lease: typeof leases.$inferSelect, who: string): Holding {
  const { grantedAt, expiresAt, usageAt, noticeAt, releaseAt } = lease;
  return holdingFrom({
    ...lease,
    who,
    grantedAt: grantedAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
    usageAt: usageAt?.toISOString() ?? null,
    noticeAt: noticeAt?.toISOString() ?? null,
    releaseAt: releaseAt?.toISOString() ?? null,
  });
}

/** GPU types that have a device or a quota, in alphabetical order, as a column of any query. */
export const gpuTypesNow = sql<string[]>`array(
  select g.gpu_type from gpus g join gpu_servers s on s.id = g.server_id and s.state <> 'removed'
  union select gpu_type from quotas order by 1)`;

/** The same alone. */
export async function knownGpuTypes(db: Database | Transaction): Promise<string[]> {
  const [row] = await db.execute<{ types: string[] }>(sql`select ${gpuTypesNow} as types`);
  return row?.types ?? [];
}
