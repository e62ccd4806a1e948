/** Writes whom a round has told that their lease will be taken back, for whom, and what is kept for the claimants. */
import { and, eq, inArray, ne } from "drizzle-orm";
import { system } from "#server/auth/principal.ts";
import { audit, type Context } from "#server/context.ts";
import type { Transaction } from "#server/db/client.ts";
import { leaseRequests, leases } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { reservationIdOf } from "#server/scheduler/reservation.ts";
import { groupOf } from "#server/scheduler/share.ts";
import type { Holding, Round, World } from "#server/scheduler/types.ts";
import { withdrawNotices } from "#server/services/notice/withdraw.ts";
import { reclaimed, reclaimKey } from "#server/services/notice/words.ts";
import { writeNotices } from "#server/services/notice/write.ts";
import { theirs } from "./holder.ts";

type Tx = Context & { db: Transaction };

/** Runs under the type's lock, in the transaction of the round. A lease's group is its request. */
export async function tell(ctx: Tx, world: World, round: Round): Promise<void> {
  const { notices, withdrawn, kept } = round;
  if (notices.length === 0 && withdrawn.length === 0 && kept.length === 0) return;
  const by = { ...ctx, principal: system };
  const partsOf = (groupId: string) => world.holdings.filter((holding) => groupOf(holding) === groupId);
  const heard = [...notices.map((one) => one.leaseId), ...withdrawn].flatMap(partsOf);
  await Promise.all([
    ...notices.map(async ({ leaseId, notice }) => {
      const { requestId, at, releaseAt } = notice;
      const told = await ctx.db
        .update(leases)
        .set({ noticeFor: requestId, noticeAt: new Date(at), releaseAt: new Date(releaseAt) })
        .where(and(eq(leases.requestId, leaseId), ne(leases.state, "ended")))
        .returning();
      if (told.length > 0)
        await writeNotices(ctx, [reclaimed(theirs(told), claimant(world, requestId), new Date(releaseAt))]);
      const [first] = partsOf(leaseId);
      const detail = { for: requestId, releaseAt: new Date(releaseAt).toISOString(), milli: first?.milli };
      await audit(by, { action: "lease.notice", subject: first?.leaseId, teamId: first?.teamId, detail });
    }),
    withdrawn.length === 0
      ? undefined
      : ctx.db
          .update(leases)
          .set({ noticeFor: null, noticeAt: null, releaseAt: null })
          .where(and(inArray(leases.requestId, withdrawn), ne(leases.state, "ended"))),
    withdrawNotices(ctx, withdrawn.map(reclaimKey)),
    ...withdrawn.map(async (leaseId) => {
      const [first] = partsOf(leaseId);
      await audit(by, { action: "lease.withdraw-notice", subject: first?.leaseId, teamId: first?.teamId });
    }),
    ...kept.map(({ requestId, gpuIds }) =>
      ctx.db
        .update(leaseRequests)
        .set({ keptGpuIds: gpuIds.length === 0 ? null : gpuIds })
        .where(and(eq(leaseRequests.id, requestId), eq(leaseRequests.state, "queued"))),
    ),
    ...heard.map(async (holding) => await notify(ctx.db, "lease", holding.leaseId)),
  ]);
}

/** Name of the team that something is taken back for. */
function claimant(world: World, requestId: string): string | undefined {
  const claim =
    world.queue.find((waiting) => waiting.requestId === requestId) ??
    world.reservations?.find((reservation) => reservation.id === reservationIdOf(requestId));
  return claim === undefined ? undefined : world.quotas.get(claim.teamId)?.teamName;
}

/** What is held, with what has been told and withdrawn. */
export function withNotices(holdings: readonly Holding[], { notices, withdrawn }: Round): Holding[] {
  const told = new Map(notices.map(({ leaseId, notice }) => [leaseId, notice]));
  return holdings.map((holding) => {
    const id = groupOf(holding);
    if (withdrawn.includes(id)) return { ...holding, notice: undefined };
    const notice = told.get(id);
    return notice === undefined ? holding : { ...holding, notice };
  });
}
