/** What the broker answers about a request, from its row. */
import { and, eq, or } from "drizzle-orm";
import { type LeaseRequestAnswer, leaseReason } from "#server/contracts/lease.ts";
import type { Database, Transaction } from "#server/db/client.ts";
import { leaseRequests, leases } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { estimate } from "#server/scheduler/estimate.ts";
import { leastCharge } from "#server/scheduler/fits-now.ts";
import { explain } from "#server/scheduler/reasons.ts";
import { seenByAsker } from "#server/scheduler/seen-by.ts";
import type { Verdict, World } from "#server/scheduler/types.ts";
import { endSentence } from "./ending.ts";
import { shownWorld } from "./shown.ts";
import { leaseViewOf, placedLeases } from "./view.ts";

export type RequestRow = typeof leaseRequests.$inferSelect;

/** This workspace's request, by the client's own key (or our id). */
export async function ownRequest(
  db: Database | Transaction,
  workspaceId: string,
  requestId: string,
): Promise<RequestRow> {
  const [row] = await db
    .select()
    .from(leaseRequests)
    .where(
      and(
        eq(leaseRequests.workspaceId, workspaceId),
        or(eq(leaseRequests.idempotencyKey, requestId), eq(leaseRequests.id, requestId)),
      ),
    )
    .limit(1);
  if (row === undefined)
    throw new SluiceError("not-found", "There is no such request in this workspace. Ask again with %gpu attach.");
  return row;
}

/** The answer for a request in whatever state it is. */
export async function answerFor(db: Database | Transaction, row: RequestRow, now: Date): Promise<LeaseRequestAnswer> {
  const requestId = row.idempotencyKey;
  switch (row.state) {
    case "granted":
      return await grantedAnswer(db, row);
    case "queued":
      return await queuedAnswer(db, row, now);
    case "refused":
      return { state: "refused", requestId, reason: leaseReason.parse(row.reason) };
    case "cancelled":
    case "expired": {
      const reason = leaseReason.safeParse(row.reason);
      return { state: row.state, requestId, ...(reason.success ? { reason: reason.data } : {}) };
    }
  }
}

async function grantedAnswer(db: Database | Transaction, row: RequestRow): Promise<LeaseRequestAnswer> {
  const parts = await placedLeases(db).where(eq(leases.requestId, row.id)).orderBy(leases.ordinal);
  const [placed] = parts;
  if (placed === undefined) throw new Error(`granted request ${row.id} has no lease`);
  if (placed.lease.state === "ending" || placed.lease.state === "ended") {
    throw new SluiceError("conflict", endSentence(placed.lease.endReason, placed.lease.endNote), {
      endReason: placed.lease.endReason,
    });
  }
  return { state: "granted", requestId: row.idempotencyKey, lease: leaseViewOf(placed, parts) };
}

async function queuedAnswer(db: Database | Transaction, row: RequestRow, now: Date): Promise<LeaseRequestAnswer> {
  const { world, verdicts } = await shownWorld(db, row, now);
  return queuedIn(world, row, now, verdicts);
}

/** The answer for a request that waits in this world, of which these are the verdicts: place, reason, what to expect. */
export function queuedIn(world: World, row: RequestRow, now: Date, verdicts: readonly Verdict[]): LeaseRequestAnswer {
  const verdict = verdicts.find((candidate) => candidate.requestId === row.id);
  const request = world.queue.find((waiting) => waiting.requestId === row.id);
  const waitedSeconds = Math.max(0, (now.getTime() - row.createdAt.getTime()) / 1000);
  const common = { requestId: row.idempotencyKey, milli: row.milli, gpuType: row.gpuType, waitedSeconds };
  if (verdict === undefined || request === undefined || verdict.state !== "queued") {
    // Room has come since the row was read; whoever made it is granting right now.
    return {
      state: "queued",
      ...common,
      position: 1,
      of: Math.max(1, world.queue.length),
      reason: { rule: "order", message: "Capacity is available. Granting your request…" },
    };
  }
  const guess = estimate(row.id, world, verdicts);
  return {
    state: "queued",
    ...common,
    milli: leastCharge(request, world),
    position: verdict.position,
    of: verdict.of,
    reason: explain(request, verdict.obstacle, seenByAsker(request, world)),
    ...(guess === undefined ? {} : { likelySeconds: guess.likely }),
    ...(guess?.soonest === undefined ? {} : { soonestSeconds: guess.soonest }),
  };
}
