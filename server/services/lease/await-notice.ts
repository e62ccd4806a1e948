import { eq, inArray } from "drizzle-orm";
import { union } from "drizzle-orm/pg-core";
import { z } from "zod";
import { authorize, type Context } from "#server/context.ts";
import type { LeaseNotice } from "#server/contracts/lease.ts";
import { leaseRequests, leases, reservations, teamPolicies, teams } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";
import { reservationIdOf } from "#server/scheduler/reservation.ts";
import { idleEndOf } from "./holder.ts";
import { DEFAULT_IDLE_SECONDS, MAX_POLL_SECONDS } from "./policy.ts";
import { workspacePrincipal } from "./request.ts";
import { leaseViewOf, ownLease } from "./view.ts";
import { idleWarningAt } from "./warn-of-idle.ts";
import type { Watcher } from "./watch.ts";

const awaitNoticeInput = z.strictObject({
  leaseId: z.string().max(64),
  /** How long the answer may be held back while there is nothing new to tell. */
  waitSeconds: z.number().min(0).max(MAX_POLL_SECONDS).default(0),
  /** The mark of the last answer. */
  known: z.string().max(200).default(""),
});
export type AwaitNoticeInput = z.input<typeof awaitNoticeInput>;

/** What the holder of a lease is to be told, as soon as it is something else than was told last, else after a while. */
export async function awaitNotice(ctx: Context, raw: AwaitNoticeInput, watcher: Watcher): Promise<LeaseNotice> {
  const { leaseId, waitSeconds, known } = parse(awaitNoticeInput, raw);
  const { workspaceId } = workspacePrincipal(ctx);
  authorize(ctx.principal, "lease.status", { workspaceId });
  const until = ctx.now().getTime() + waitSeconds * 1000;
  const watch = watcher(leaseId);
  try {
    for (;;) {
      const { answer, changesAt } = await read(ctx, workspaceId, leaseId);
      const now = ctx.now().getTime();
      if (answer.mark !== known || !answer.held || now >= until) return answer;
      await watch.changed(Math.min(until, changesAt) - now);
    }
  } finally {
    watch.close();
  }
}

/** What is to be told now, and when that changes by itself. */
async function read(
  ctx: Context,
  workspaceId: string,
  leaseId: string,
): Promise<{ answer: LeaseNotice; changesAt: number }> {
  const placed = await ownLease(ctx.db, workspaceId, leaseId);
  const { lease } = placed;
  const held = lease.state !== "ending" && lease.state !== "ended";
  const [policy] = await ctx.db.select().from(teamPolicies).where(eq(teamPolicies.teamId, lease.teamId));
  const idleMs = (policy?.idleSeconds ?? DEFAULT_IDLE_SECONDS) * 1000;
  const parts = await ctx.db.select().from(leases).where(eq(leases.requestId, lease.requestId));
  const idleEnd = idleEndOf(parts, idleMs);
  const warnAt = idleEnd === null ? Number.POSITIVE_INFINITY : idleWarningAt(idleEnd.getTime(), idleMs);
  const idles = held && ctx.now().getTime() >= warnAt;
  const idleEndsAt = idles ? (idleEnd?.toISOString() ?? null) : null;
  const notice = held ? leaseViewOf(placed).notice : null;
  const answer = {
    mark: [held ? "held" : "ended", notice?.releaseAt ?? "", idleEndsAt ?? ""].join(" "),
    ...{ held, notice, idleEndsAt, usedMemoryBytes: lease.usedMemoryBytes },
    forTeam: notice === null || lease.noticeFor === null ? null : await teamOf(ctx, lease.noticeFor),
  };
  return { answer, changesAt: idles ? Number.POSITIVE_INFINITY : warnAt };
}

/** The team of whom it is taken back for: one who waits, or a reservation that is about to begin. */
async function teamOf({ db }: Context, requestId: string): Promise<string | null> {
  const waits = db.select({ teamId: leaseRequests.teamId }).from(leaseRequests).where(eq(leaseRequests.id, requestId));
  const reserved = db
    .select({ teamId: reservations.teamId })
    .from(reservations)
    .where(eq(reservations.id, reservationIdOf(requestId)));
  const [found] = await db
    .select({ name: teams.name })
    .from(teams)
    .where(inArray(teams.id, union(waits, reserved)));
  return found?.name ?? null;
}
