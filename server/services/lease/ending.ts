/** The two halves of a lease's end: gpud is told (`ending`, the amount still counts), gpud has confirmed (`ended`). */
import { and, eq, inArray, isNull } from "drizzle-orm";
import { audit, type Context } from "#server/context.ts";
import type { Transaction } from "#server/db/client.ts";
import { leaseIntervals, leases } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import type { LeaseRow } from "./view.ts";

export type EndReason = NonNullable<LeaseRow["endReason"]>;
export type HowToEnd = { reason: EndReason; mode: "park" | "kill"; note?: string };

/** All parts of the leases to which these belong: a lease of several GPUs ends as a whole. */
function wholeLeases(ctx: Context & { db: Transaction }, leaseIds: string[]) {
  const requests = ctx.db.select({ id: leases.requestId }).from(leases).where(inArray(leases.id, leaseIds));
  return inArray(leases.requestId, requests);
}

/**
 * Marks leases `ending`; the broker that holds their gpud's control connection hears of it and tells gpud. Needs no
 * lock: what they hold still counts until gpud has confirmed.
 */
export async function beginEnd(
  ctx: Context & { db: Transaction },
  leaseIds: string[],
  how: HowToEnd,
): Promise<LeaseRow[]> {
  if (leaseIds.length === 0) return [];
  const begun = await ctx.db
    .update(leases)
    .set({
      state: "ending",
      endingAt: ctx.now(),
      endMode: how.mode,
      endReason: how.reason,
      endNote: how.note ?? null,
    })
    .where(and(wholeLeases(ctx, leaseIds), inArray(leases.state, ["granted", "active", "unreachable"])))
    .returning();
  if (begun.length === 0) return [];
  await Promise.all(begun.flatMap((lease) => [auditEnd(ctx, lease, how.reason), notify(ctx.db, "lease", lease.id)]));
  return begun;
}

/** What gpud said of a lease's end. */
export type Closing = { parkedBytes: number; gpuTimeUs: number };

/**
 * Closes leases: state and ledger interval. `how` is for those that end without having been `ending`. Needs no lock: it
 * only makes room, and the caller advances the queues of their types afterwards. Returns those that it closed.
 */
export async function closeLeases(
  ctx: Context & { db: Transaction },
  leaseIds: string[],
  how: HowToEnd,
  closings: ReadonlyMap<string, Closing> = new Map(),
): Promise<LeaseRow[]> {
  if (leaseIds.length === 0) return [];
  const now = ctx.now();
  const before = await ctx.db
    .select()
    .from(leases)
    .where(and(inArray(leases.id, leaseIds), inArray(leases.state, ["granted", "active", "unreachable", "ending"])))
    .orderBy(leases.id)
    .for("update");
  await Promise.all(before.map(async (lease) => await close(ctx, lease, now, how, closings.get(lease.id))));
  // The other parts of a lease of several GPUs are of no use alone.
  await beginEnd(
    ctx,
    before.map((lease) => lease.id),
    { ...how, mode: "kill" },
  );
  return before;
}

async function close(
  ctx: Context & { db: Transaction },
  lease: LeaseRow,
  now: Date,
  how: HowToEnd,
  closing: Closing | undefined,
): Promise<void> {
  const unsaid = lease.state === "ending" ? {} : { endReason: how.reason, endNote: how.note ?? null };
  await Promise.all([
    ctx.db
      .update(leases)
      .set({
        state: "ended",
        endedAt: now,
        ...unsaid,
        parkedBytes: closing?.parkedBytes ?? 0,
        usedMemoryBytes: 0,
        ...(closing === undefined ? {} : { gpuTimeUs: Math.max(lease.gpuTimeUs, closing.gpuTimeUs) }),
      })
      .where(eq(leases.id, lease.id)),
    ctx.db
      .update(leaseIntervals)
      .set({ endedAt: now })
      .where(and(eq(leaseIntervals.leaseId, lease.id), isNull(leaseIntervals.endedAt))),
    lease.state === "ending" ? undefined : auditEnd(ctx, lease, how.reason),
    notify(ctx.db, "lease", lease.id),
    notify(ctx.db, "pool", lease.gpuId),
  ]);
}

async function auditEnd(ctx: Context, lease: LeaseRow, reason: EndReason): Promise<void> {
  const { workspaceId, gpuId, milli, teamId } = lease;
  await audit(ctx, { action: "lease.end", subject: lease.id, teamId, detail: { reason, workspaceId, gpuId, milli } });
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
