/** Grants what fits. Runs under the type's lock, so that decision, placement and reservation are one transaction. */
import { and, eq, inArray } from "drizzle-orm";
import { system } from "#server/auth/principal.ts";
import { audit, type Context } from "#server/context.ts";
import type { LeaseReason } from "#server/contracts/lease.ts";
import type { Transaction } from "#server/db/client.ts";
import { gpuServers, gpus, leaseIntervals, leaseRequests, leases } from "#server/db/schema/index.ts";
import { newId } from "#server/ids.ts";
import { notify } from "#server/live.ts";
import { evaluate } from "#server/scheduler/queue.ts";
import { explain } from "#server/scheduler/reasons.ts";
import type { Holding, Placement, Verdict, Waiting, World } from "#server/scheduler/types.ts";
import { tell, withNotices } from "./tell.ts";
import type { LeaseRow } from "./view.ts";
import { holdingOf, loadWorld } from "./world.ts";

/** The world after a round, and who was granted in it. */
export type Advanced = { world: World; granted: Set<string> };

/**
 * Goes through the queue of one GPU type and applies every verdict that changes something. The caller holds
 * `lockGpuType` in the same transaction.
 */
export async function advanceQueue(ctx: Context & { db: Transaction }, gpuType: string): Promise<Advanced> {
  const world = await loadWorld(ctx.db, gpuType, ctx.now());
  // Read after the world: a lease that ended just before it was read must not end after the next one begins.
  const now = ctx.now();
  const holdings = [...world.holdings];
  const left = new Set<string>();
  const granted = new Set<string>();
  const apply = async (verdict: Verdict): Promise<void> => {
    const request = world.queue.find((waiting) => waiting.requestId === verdict.requestId);
    if (verdict.state === "queued" || request === undefined) return;
    left.add(verdict.requestId);
    if (verdict.state === "refused") return await refuse(ctx, request, explain(request, verdict.obstacle, world), now);
    const held = await grant(ctx, request, verdict.placement, now);
    if (held === undefined) return;
    holdings.push(...held);
    granted.add(verdict.requestId);
  };
  // All at once on one connection: they are sent together, and applied in order.
  const round = evaluate(world);
  await Promise.all([...round.verdicts.map(apply), tell(ctx, world, round)]);
  const kept = new Map(round.kept.map(({ requestId, gpuIds }) => [requestId, gpuIds]));
  const queue = world.queue
    .filter((waiting) => !left.has(waiting.requestId))
    .map((waiting) => ({ ...waiting, keptGpuIds: kept.get(waiting.requestId) ?? waiting.keptGpuIds }));
  return { world: { ...world, holdings: withNotices(holdings, round), queue }, granted };
}

async function refuse(
  ctx: Context & { db: Transaction },
  request: Waiting,
  reason: LeaseReason,
  now: Date,
): Promise<void> {
  await ctx.db
    .update(leaseRequests)
    .set({ state: "refused", reason, decidedAt: now })
    .where(and(eq(leaseRequests.id, request.requestId), eq(leaseRequests.state, "queued")));
  await notify(ctx.db, "lease", request.requestId);
}

/** Nothing when the request has left the queue meanwhile: leaving needs no lock. */
async function grant(
  ctx: Context & { db: Transaction },
  waiting: Waiting,
  placement: Placement,
  now: Date,
): Promise<Holding[] | undefined> {
  const { requestId } = waiting;
  const gpuIds = placement.pieces.map((piece) => piece.gpuId);
  const [[request], places] = await Promise.all([
    ctx.db
      .update(leaseRequests)
      .set({ state: "granted", decidedAt: now, reason: null, keptGpuIds: null })
      .where(and(eq(leaseRequests.id, requestId), eq(leaseRequests.state, "queued")))
      .returning(),
    ctx.db
      .select({ gpuId: gpus.id, serverId: gpus.serverId, epoch: gpuServers.epoch })
      .from(gpus)
      .innerJoin(gpuServers, eq(gpuServers.id, gpus.serverId))
      .where(inArray(gpus.id, gpuIds)),
  ]);
  if (request === undefined) return undefined;
  const expiresAt = new Date(now.getTime() + request.forSeconds * 1000);
  const rows = placement.pieces.map((piece, ordinal) => {
    const place = places.find((candidate) => candidate.gpuId === piece.gpuId);
    if (place === undefined) throw new Error(`device ${piece.gpuId} vanished under the lock of its type`);
    return leaseRow(request, { ...place, ...piece, ordinal, borrowed: placement.borrowed }, now, expiresAt);
  });
  // Sent together, in this order: the lock of the type is held for one round trip, not for seven.
  await Promise.all([
    ctx.db.insert(leases).values(rows),
    ctx.db.insert(leaseIntervals).values(
      rows.map((row) => ({
        leaseId: row.id,
        teamId: row.teamId,
        userId: row.userId,
        gpuId: row.gpuId,
        gpuType: row.gpuType,
        milli: row.milli,
        startedAt: now,
      })),
    ),
    // Whoever made room is not the one who grants.
    audit(
      { ...ctx, principal: system },
      {
        action: "lease.grant",
        subject: rows[0]?.id ?? requestId,
        teamId: request.teamId,
        detail: {
          workspaceId: request.workspaceId,
          gpuType: request.gpuType,
          gpuId: placement.gpuId,
          milli: placement.milli,
          borrowed: placement.borrowed,
          ...(rows.length > 1 ? { gpuIds } : {}),
        },
      },
    ),
    notify(ctx.db, "lease", requestId),
    ...rows.flatMap((row) => [notify(ctx.db, "lease", row.id), notify(ctx.db, "pool", row.gpuId)]),
  ]);
  return rows.map((row) => holdingOf(row, waiting.who));
}

type Place = {
  gpuId: string;
  serverId: string;
  epoch: number;
  milli: number;
  memoryBytes: number;
  ordinal: number;
  borrowed: boolean;
};

function leaseRow(request: typeof leaseRequests.$inferSelect, place: Place, now: Date, expiresAt: Date): LeaseRow {
  const { gpuId, serverId, epoch, milli, memoryBytes, ordinal, borrowed } = place;
  return {
    ...{ id: newId("lea"), requestId: request.id, workspaceId: request.workspaceId },
    ...{ teamId: request.teamId, userId: request.userId, owner: request.owner, gpuType: request.gpuType },
    ...{ gpuId, serverId, epoch, milli, memoryBytes, ordinal },
    ...{ borrowed: borrowed ? 1 : 0, guaranteedOnly: request.guaranteedOnly, state: "granted" as const },
    ...{ grantedAt: now, ownerSeenAt: now, expiresAt, claimedAt: null, disconnectedAt: null },
    ...{ noticeFor: null, noticeAt: null, releaseAt: null },
    ...{ endingAt: null, endMode: null, endedAt: null, endReason: null, endNote: null },
    ...{ parkedBytes: 0, usedMemoryBytes: 0, gpuTimeUs: 0, calls: 0, usageAt: null },
  };
}
