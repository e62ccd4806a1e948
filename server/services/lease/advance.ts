/** Grants what fits. Runs under the type's lock, so that decision, placement and reservation are one transaction. */
import { and, eq } from "drizzle-orm";
import { system } from "#server/auth/principal.ts";
import { audit, type Context } from "#server/context.ts";
import type { LeaseReason } from "#server/contracts/lease.ts";
import type { Transaction } from "#server/db/client.ts";
import { gpuServers, gpus, leaseIntervals, leaseRequests, leases } from "#server/db/schema/index.ts";
import { newId } from "#server/ids.ts";
import { notify } from "#server/live.ts";
import { evaluateQueue } from "#server/scheduler/queue.ts";
import { explain } from "#server/scheduler/reasons.ts";
import type { Holding, Placement, Verdict, Waiting, World } from "#server/scheduler/types.ts";
import { loadWorld } from "./world.ts";

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
    const holding = await grant(ctx, request, verdict.placement, now);
    if (holding === undefined) return;
    holdings.push(holding);
    granted.add(verdict.requestId);
  };
  // All at once on one connection: they are sent together, and applied in order.
  await Promise.all(evaluateQueue(world).map(apply));
  const queue = world.queue.filter((waiting) => !left.has(waiting.requestId));
  return { world: { ...world, holdings, queue }, granted };
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
): Promise<Holding | undefined> {
  const { requestId } = waiting;
  const [[request], [place]] = await Promise.all([
    ctx.db
      .update(leaseRequests)
      .set({ state: "granted", decidedAt: now, reason: null })
      .where(and(eq(leaseRequests.id, requestId), eq(leaseRequests.state, "queued")))
      .returning(),
    ctx.db
      .select({ serverId: gpus.serverId, epoch: gpuServers.epoch })
      .from(gpus)
      .innerJoin(gpuServers, eq(gpuServers.id, gpus.serverId))
      .where(eq(gpus.id, placement.gpuId)),
  ]);
  if (request === undefined) return undefined;
  if (place === undefined) throw new Error(`device ${placement.gpuId} vanished under the lock of its type`);
  const leaseId = newId("lea");
  const expiresAt = new Date(now.getTime() + request.forSeconds * 1000);
  // Sent together, in this order: the lock of the type is held for one round trip, not for seven.
  await Promise.all([
    ctx.db.insert(leases).values({
      id: leaseId,
      requestId,
      workspaceId: request.workspaceId,
      teamId: request.teamId,
      userId: request.userId,
      gpuId: placement.gpuId,
      serverId: place.serverId,
      gpuType: request.gpuType,
      milli: placement.milli,
      memoryBytes: placement.memoryBytes,
      borrowed: placement.borrowed ? 1 : 0,
      owner: request.owner,
      state: "granted",
      epoch: place.epoch,
      grantedAt: now,
      ownerSeenAt: now,
      expiresAt,
    }),
    ctx.db.insert(leaseIntervals).values({
      leaseId,
      teamId: request.teamId,
      userId: request.userId,
      gpuId: placement.gpuId,
      gpuType: request.gpuType,
      milli: placement.milli,
      startedAt: now,
    }),
    // Whoever made room is not the one who grants.
    audit(
      { ...ctx, principal: system },
      {
        action: "lease.grant",
        subject: leaseId,
        teamId: request.teamId,
        detail: {
          workspaceId: request.workspaceId,
          gpuType: request.gpuType,
          gpuId: placement.gpuId,
          milli: placement.milli,
          borrowed: placement.borrowed,
        },
      },
    ),
    notify(ctx.db, "lease", requestId),
    notify(ctx.db, "lease", leaseId),
    notify(ctx.db, "pool", placement.gpuId),
  ]);
  return {
    leaseId,
    teamId: request.teamId,
    userId: request.userId,
    ...placement,
    expiresAt: expiresAt.getTime(),
    who: waiting.who,
    ...(request.owner.label === undefined ? {} : { label: request.owner.label }),
    lastWorkAt: now.getTime(),
  };
}
