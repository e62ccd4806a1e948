import { eq } from "drizzle-orm";
import { z } from "zod";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type ExtendLeaseAnswer, extendLeaseInput } from "#server/contracts/lease.ts";
import { leases } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { isSpent } from "#server/scheduler/budget.ts";
import { inUtc } from "#server/scheduler/calendar.ts";
import { stopFor } from "#server/scheduler/stops.ts";
import { endSentence } from "./ending.ts";
import { leavesWithServer } from "./holder.ts";
import { longestLeaseSeconds } from "./lease-length.ts";
import { kindOfWork } from "./owners.ts";
import { findPlacedLease } from "./view.ts";
import { loadRules } from "./world.ts";

const extendInput = extendLeaseInput.extend({ leaseId: z.string().max(64) });
export type ExtendInput = z.infer<typeof extendInput>;

/** Lets a lease last longer, up to the team's longest; a lease that is being taken back cannot be extended. */
export async function extend(ctx: Context, raw: ExtendInput): Promise<ExtendLeaseAnswer> {
  const input = parse(extendInput, raw);
  const found = await findPlacedLease(ctx.db, input.leaseId);
  const resource = { workspaceId: found?.lease.workspaceId, ownerId: found?.lease.userId };
  authorize(ctx.principal, "lease.extend", resource);
  if (found === undefined) throw new SluiceError("not-found", "There is no such lease. Run %gpu to see what you have.");
  return await inTransaction(ctx, async (tx) => {
    const { requestId, teamId } = found.lease;
    const parts = await tx.db
      .select()
      .from(leases)
      .where(eq(leases.requestId, requestId))
      .orderBy(leases.id)
      .for("update");
    const lease = parts.find((part) => part.id === found.lease.id) ?? found.lease;
    if (lease.state === "ending" || lease.state === "ended") {
      throw new SluiceError("conflict", endSentence(lease.endReason, lease.endNote), { endReason: lease.endReason });
    }
    if (lease.releaseAt !== null) {
      throw new SluiceError(
        "refused",
        leavesWithServer(lease)
          ? "This GPU is being taken back, because its server goes out of service. Save your work, give it back and borrow another."
          : "This GPU is being taken back for another team. Save your work; then %gpu attach --guaranteed borrows one that is never taken back.",
        { releaseAt: lease.releaseAt.toISOString() },
      );
    }
    const longest = await longestLeaseSeconds(tx, teamId);
    const last = lease.grantedAt.getTime() + longest * 1000;
    const expiresAt = new Date(lease.expiresAt.getTime() + input.forSeconds * 1000);
    if (expiresAt.getTime() > last) {
      const hours = Math.floor(longest / 360) / 10;
      const left = Math.max(0, Math.floor((last - lease.expiresAt.getTime()) / 60_000));
      throw new SluiceError(
        "refused",
        `A lease of your team lasts at most ${hours} h; this one can be extended by ${left} min. Detach and attach again for a new one.`,
        { latest: new Date(last).toISOString() },
      );
    }
    const held = await whyNoLonger(tx, lease);
    if (held !== undefined) throw new SluiceError("refused", held);
    await tx.db.update(leases).set({ expiresAt }).where(eq(leases.requestId, requestId));
    await audit(tx, { action: "lease.extend", subject: lease.id, teamId, detail: { forSeconds: input.forSeconds } });
    for (const part of parts) await notify(tx.db, "lease", part.id);
    return { leaseId: lease.id, expiresAt: expiresAt.toISOString() };
  });
}

/** Why a lease may not be longer though it is its owner's and short enough: what would hold back a new one. */
async function whyNoLonger(
  { db, now }: Context,
  { teamId, userId, gpuType, owner }: typeof leases.$inferSelect,
): Promise<string | undefined> {
  const rules = await loadRules(db, gpuType, now());
  const stop = stopFor({ teamId, userId }, rules.stops);
  if (stop !== undefined) {
    const why = stop.scope === "user" ? "" : ` (${stop.reason})`;
    return `New leases are stopped${why}, and none is extended until then. This one lasts to its end.`;
  }
  const { open } = rules;
  const kind = kindOfWork(owner);
  if (open !== undefined && !open.kinds.includes(kind)) {
    const until = open.nextAt === undefined ? "" : ` until ${inUtc(open.nextAt)}`;
    return `${gpuType} takes no ${kind} work${until}. This lease lasts to its end.`;
  }
  const quota = rules.quotas.get(teamId);
  if (quota === undefined || !isSpent(quota.budget, rules.now)) return undefined;
  return `Team ${quota.teamName} has used its budget of GPU-hours of ${gpuType}. This lease lasts to its end; ask your team lead or an admin for a larger budget.`;
}
