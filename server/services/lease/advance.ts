/** Grants what fits. Runs under the type's lock, so that decision, placement and reservation are one transaction. */
import { and, eq, inArray, type SQL, sql } from "drizzle-orm";
import { system } from "#server/auth/principal.ts";
import { type AuditEntry, type Context, record } from "#server/context.ts";
import type { LeaseReason } from "#server/contracts/lease.ts";
import type { Transaction } from "#server/db/client.ts";
import { insertion } from "#server/db/insertion.ts";
import { leaseIntervals, leaseRequests, leases } from "#server/db/schema/index.ts";
import { newId } from "#server/ids.ts";
import { evaluate } from "#server/scheduler/queue.ts";
import { explain } from "#server/scheduler/reasons.ts";
import { seenByAsker } from "#server/scheduler/seen-by.ts";
import type { Placement, Round, Verdict, World } from "#server/scheduler/types.ts";
import { granted as grantedWords } from "#server/services/notice/words.ts";
import { type Notice, writeNotices } from "#server/services/notice/write.ts";
import type { RequestRow } from "./answer.ts";
import { theirs } from "./holder.ts";
import { tell, withNotices } from "./tell.ts";
import type { LeaseOnDevice, LeaseRow } from "./view.ts";
import { holdingOf, worldFrom } from "./world.ts";
import { waitingOf } from "./world-queue.ts";
import { type DeviceRow, readWorldRows, type WorldRows } from "./world-rows.ts";

type Tx = Context & { db: Transaction };

/** A request that comes with this round and is in no table yet. */
export type Fresh = {
  row: RequestRow;
  who: string;
  /** Nobody waits for it: what is not granted now is refused. */
  waits: boolean;
  /** What the audit log says of it. */
  entry: AuditEntry;
};

/** The world after a round, what was decided in it, and the leases of those who were granted. */
export type Advanced = {
  world: World;
  verdicts: readonly Verdict[];
  granted: ReadonlyMap<string, LeaseOnDevice[]>;
  refused: ReadonlyMap<string, LeaseReason>;
};

/** What the caller adds to the queue of the world that was read under the lock. */
export type Arrivals = (world: World) => readonly Fresh[];

/**
 * Goes through the queue of one GPU type and applies every verdict that changes something. The caller holds
 * `lockGpuType` in the same transaction, and may have read `rows` under it. However many are granted, one statement
 * writes all of it.
 */
export async function advanceQueue(
  ctx: Tx,
  gpuType: string,
  { arrivals = () => [], rows: known }: { arrivals?: Arrivals; rows?: WorldRows } = {},
): Promise<Advanced> {
  const rows = known ?? (await readWorldRows(ctx.db, gpuType, ctx.now()));
  const loaded = worldFrom(rows, gpuType, ctx.now());
  const places = new Map(rows.devices.map((device) => [device.id, device]));
  const fresh = arrivals(loaded);
  const world = { ...loaded, queue: [...loaded.queue, ...fresh.map(({ row, who }) => waitingOf(row, who))] };
  // Read after the world: a lease that ended just before it was read must not end after the next one begins.
  const now = ctx.now();
  const judged = evaluate(world);
  const granted = await grant(ctx, { round: judged, fresh, places, now });
  const after = worldAfter(world, judged, granted);
  const refused = refusals({ round: judged, world, after, fresh });
  // Nobody is told for the sake of one that does not wait.
  const round = {
    ...judged,
    notices: judged.notices.filter(({ notice }) => !refused.has(notice.requestId)),
    kept: judged.kept.filter(({ requestId }) => !refused.has(requestId)),
  };
  const given = [...granted.values()].flatMap((parts) => parts.map(({ lease }) => lease));
  await Promise.all([
    refuseWaiting(ctx, { refused, fresh, now }),
    tell(ctx, world, round),
    writeNotices(ctx, turnsCome({ world, granted, now })),
    record(
      ctx.db,
      [
        ...fresh.map(({ entry }) => entry),
        // Whoever made room is not the one who grants.
        ...[...granted.values()].map((parts) => ({ by: { ...ctx, principal: system }, input: grantEntry(parts) })),
      ],
      [
        ...[...granted.keys(), ...refused.keys()].map((id) => ({ topic: "lease" as const, id })),
        ...given.flatMap(({ id, gpuId }) => [
          { topic: "lease" as const, id },
          { topic: "pool" as const, id: gpuId },
        ]),
      ],
      [...freshRows(fresh, { granted, refused, round, now }), ...leaseRows(given, now)],
    ),
  ]);
  const holdings = withNotices(after.holdings, round);
  return { world: { ...after, holdings }, verdicts: round.verdicts, granted, refused };
}

/** With those who were granted, and without those who wait no more. */
function worldAfter(world: World, round: Round, granted: ReadonlyMap<string, LeaseOnDevice[]>): World {
  const states = new Map(round.verdicts.map((verdict) => [verdict.requestId, verdict.state]));
  const kept = new Map(round.kept.map(({ requestId, gpuIds }) => [requestId, gpuIds]));
  const who = new Map(world.queue.map((waiting) => [waiting.requestId, waiting.who]));
  const holdings = [...granted].flatMap(([requestId, parts]) =>
    parts.map(({ lease }) => holdingOf(lease, who.get(requestId) ?? "")),
  );
  const queue = world.queue
    .filter(({ requestId }) => (states.get(requestId) ?? "queued") === "queued")
    .map((waiting) => ({ ...waiting, keptGpuIds: kept.get(waiting.requestId) ?? waiting.keptGpuIds }));
  return { ...world, holdings: [...world.holdings, ...holdings], queue };
}

type Refusing = { round: Round; world: World; after: World; fresh: readonly Fresh[] };

/** Why some are refused: they can never fit, or cannot fit now and do not wait. */
function refusals({ round, world, after, fresh }: Refusing): Map<string, LeaseReason> {
  const asked = new Map(world.queue.map((waiting) => [waiting.requestId, waiting]));
  const impatient = new Set(fresh.filter(({ waits }) => !waits).map(({ row }) => row.id));
  return new Map(
    round.verdicts.flatMap((verdict) => {
      const request = asked.get(verdict.requestId);
      if (request === undefined || verdict.state === "granted") return [];
      if (verdict.state === "queued" && !impatient.has(verdict.requestId)) return [];
      const seen = verdict.state === "queued" ? after : world;
      return [[verdict.requestId, explain(request, verdict.obstacle, seenByAsker(request, seen))] as const];
    }),
  );
}

type Granting = {
  round: Round;
  fresh: readonly Fresh[];
  places: ReadonlyMap<string, DeviceRow>;
  now: Date;
};

/** The leases to write. One that has left the queue meanwhile gets none: leaving needs no lock. */
async function grant(ctx: Tx, { round, fresh, places, now }: Granting): Promise<Map<string, LeaseOnDevice[]>> {
  const placed = new Map<string, Placement>();
  for (const verdict of round.verdicts)
    if (verdict.state === "granted") placed.set(verdict.requestId, verdict.placement);
  const rows = new Map(fresh.map(({ row }) => [row.id, row]));
  const waited = [...placed.keys()].filter((id) => !rows.has(id));
  const still =
    waited.length === 0
      ? []
      : await ctx.db
          .update(leaseRequests)
          .set({ state: "granted", decidedAt: now, reason: null, keptGpuIds: null })
          .where(and(inArray(leaseRequests.id, waited), eq(leaseRequests.state, "queued")))
          .returning();
  for (const row of still) rows.set(row.id, row);
  const granted = new Map<string, LeaseOnDevice[]>();
  for (const [requestId, placement] of placed) {
    const row = rows.get(requestId);
    if (row !== undefined) granted.set(requestId, leasesFor(row, placement, places, now));
  }
  return granted;
}

function leasesFor(
  row: RequestRow,
  placement: Placement,
  places: ReadonlyMap<string, DeviceRow>,
  now: Date,
): LeaseOnDevice[] {
  return placement.pieces.map((piece, ordinal) => {
    const place = places.get(piece.gpuId);
    if (place === undefined) throw new Error(`device ${piece.gpuId} vanished under the lock of its type`);
    const { id, name, serverId, serverName, epoch } = place;
    const lease = leaseRow(row, { ...piece, serverId, epoch, ordinal, borrowed: placement.borrowed }, now);
    return { lease, gpu: { id, name }, server: { id: serverId, name: serverName } };
  });
}

type Decided = {
  granted: ReadonlyMap<string, unknown>;
  refused: ReadonlyMap<string, LeaseReason>;
  round: Round;
  now: Date;
};

/** Those who came with this round are written with what it decided. */
function freshRows(fresh: readonly Fresh[], { granted, refused, round, now }: Decided): SQL[] {
  if (fresh.length === 0) return [];
  const kept = new Map(round.kept.map(({ requestId, gpuIds }) => [requestId, gpuIds]));
  const stateOf = (id: string) => (granted.has(id) ? "granted" : refused.has(id) ? "refused" : "queued");
  const rows = fresh.map(({ row }) => {
    const state: RequestRow["state"] = stateOf(row.id);
    const gpuIds = kept.get(row.id) ?? [];
    const keptGpuIds = gpuIds.length === 0 ? null : gpuIds;
    return {
      ...row,
      state,
      reason: refused.get(row.id) ?? null,
      decidedAt: state === "queued" ? null : now,
      keptGpuIds,
    };
  });
  return [insertion(leaseRequests, rows)];
}

/** Leases with their intervals in the ledger. */
function leaseRows(rows: readonly LeaseRow[], now: Date): SQL[] {
  if (rows.length === 0) return [];
  const intervals = rows.map(({ id, teamId, userId, gpuId, gpuType, milli }) => {
    return { leaseId: id, teamId, userId, gpuId, gpuType, milli, startedAt: now };
  });
  return [insertion(leases, rows), insertion(leaseIntervals, intervals)];
}

/** Whoever waits longer than this may have turned to something else. */
const ELSEWHERE_MS = 10_000;

/** What those are told whose turn came after a wait. */
function turnsCome({
  world,
  granted,
  now,
}: {
  world: World;
  granted: ReadonlyMap<string, LeaseOnDevice[]>;
  now: Date;
}): Notice[] {
  return world.queue.flatMap(({ requestId, createdAt }) => {
    const parts = granted.get(requestId);
    const waitedMs = now.getTime() - createdAt;
    if (parts === undefined || waitedMs < ELSEWHERE_MS) return [];
    return [grantedWords(theirs(parts.map(({ lease }) => lease)), waitedMs)];
  });
}

type Refused = { refused: ReadonlyMap<string, LeaseReason>; fresh: readonly Fresh[]; now: Date };

/** Refuses those that waited; those who came with this round are written as refused already. */
async function refuseWaiting(ctx: Tx, { refused, fresh, now }: Refused): Promise<void> {
  const come = new Set(fresh.map(({ row }) => row.id));
  const waited = [...refused].filter(([id]) => !come.has(id));
  if (waited.length === 0) return;
  const reasons = JSON.stringify(waited.map(([id, reason]) => ({ id, reason })));
  await ctx.db.execute(sql`
    update lease_requests r set state = 'refused', decided_at = ${now.toISOString()}::timestamptz, reason = refused.reason
    from json_to_recordset(${reasons}::json) as refused (id text, reason jsonb)
    where r.id = refused.id and r.state = 'queued'`);
}

function grantEntry(parts: readonly LeaseOnDevice[]) {
  const [first] = parts;
  if (first === undefined) throw new Error("a granted request has a lease");
  const { id, teamId, workspaceId, gpuType, gpuId, borrowed } = first.lease;
  const milli = parts.reduce((sum, { lease }) => sum + lease.milli, 0);
  const gpuIds = parts.map(({ lease }) => lease.gpuId);
  const detail = {
    workspaceId,
    gpuType,
    gpuId,
    milli,
    borrowed: borrowed === 1,
    ...(gpuIds.length > 1 ? { gpuIds } : {}),
  };
  return { action: "lease.grant", subject: id, teamId, detail };
}

type OnPlace = Pick<LeaseRow, "gpuId" | "serverId" | "epoch" | "milli" | "memoryBytes" | "ordinal"> & {
  borrowed: boolean;
};

function leaseRow(request: RequestRow, place: OnPlace, now: Date): LeaseRow {
  const { gpuId, serverId, epoch, milli, memoryBytes, ordinal, borrowed } = place;
  const expiresAt = new Date(now.getTime() + request.forSeconds * 1000);
  return {
    ...{ id: newId("lea"), requestId: request.id, workspaceId: request.workspaceId },
    ...{ teamId: request.teamId, userId: request.userId, owner: request.owner, gpuType: request.gpuType },
    ...{ gpuId, serverId, epoch, milli, memoryBytes, ordinal },
    ...{ borrowed: borrowed ? 1 : 0, guaranteedOnly: request.guaranteedOnly, state: "granted" as const },
    ...{ grantedAt: now, ownerSeenAt: now, expiresAt, claimedAt: null, claimChanceAt: null, disconnectedAt: null },
    ...{ noticeFor: null, noticeAt: null, releaseAt: null },
    ...{ endingAt: null, endMode: null, endedAt: null, endReason: null, endNote: null },
    ...{
      parkedBytes: 0,
      usedMemoryBytes: 0,
      gpuTimeUs: 0,
      ...{ smActiveUs: 0, smKnownUs: 0, smEstimatedUs: 0 },
      deliveredUs: 0,
      promisedUs: 0,
      calls: 0,
      usageAt: null,
      running: null,
    },
  };
}
