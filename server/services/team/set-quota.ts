import { and, eq, ne, sql } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type SetQuotaInput, setQuotaInput, type TeamView } from "#server/contracts/team.ts";
import { quotas, teams } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { advanceQueue } from "#server/services/lease/advance.ts";
import { lockGpuType } from "#server/services/lease/world.ts";
import { refuseStale } from "#server/services/refuse-stale.ts";
import { capacityByType } from "#server/services/team/capacity.ts";
import { get } from "#server/services/team/get.ts";
import { isPackable, largestOf, refuseUnpackable } from "#server/services/team/refuse-unpackable.ts";

/**
 * Sets what a team may borrow of a GPU type. A guarantee is a promise: the sum of all teams' never passes what the
 * pool has, so raising one above that is refused with what is left. What runs already goes on when a
 * limit is lowered; who waits is granted at once when a raised limit makes it fit.
 */
export async function setQuota(ctx: Context, raw: SetQuotaInput): Promise<TeamView> {
  authorize(ctx.principal, "team.set-quota");
  const { teamId, version, ...quota } = parse(setQuotaInput, raw);
  if (quota.limitMilli < quota.guaranteedMilli) {
    throw new SluiceError("invalid", "limitMilli: The limit is at least the guaranteed amount.");
  }
  return await inTransaction(ctx, async (tx) => {
    // Two edits at once could each fit and together not; and no grant is decided on half an edit.
    await lockGpuType(tx.db, quota.gpuType);
    const [team] = await tx.db.select().from(teams).where(eq(teams.id, teamId));
    if (team === undefined) throw new SluiceError("not-found", "There is no such team.");
    const ofTeam = and(eq(quotas.teamId, teamId), eq(quotas.gpuType, quota.gpuType));
    const [before] = await tx.db.select().from(quotas).where(ofTeam);
    refuseStale(version, before, `the quota of ${team.name} for ${quota.gpuType}`);
    if (quota.guaranteedMilli > (before?.guaranteedMilli ?? 0)) await refuseBeyondCapacity(tx, teamId, quota);
    if (await mayBreakPromise(tx, quota, before)) await refuseUnpackable(tx, quota.gpuType, { teamId, ...quota });
    await tx.db
      .insert(quotas)
      .values({ teamId, ...quota })
      .onConflictDoUpdate({
        target: [quotas.teamId, quotas.gpuType],
        set: { ...quota, version: sql`${quotas.version} + 1` },
      });
    await audit(tx, {
      action: "team.set-quota",
      subject: teamId,
      teamId,
      detail: { ...quota, before: before === undefined ? null : withoutTeam(before) },
    });
    await notify(tx.db, "pool", teamId);
    await advanceQueue(tx, quota.gpuType);
    return await get(tx, { id: teamId });
  });
}

type Guarantee = { gpuType: string; guaranteedMilli: number; largestMilli: number | null };

/**
 * Whether guarantees that fit the devices may not fit them after this. Larger requests need more room, and smaller ones
 * may too: three of 0.6 do not fit the two devices of two of 0.9. Where the promises do not fit as it is, smaller ones
 * are a way out.
 */
async function mayBreakPromise(tx: Context, quota: Guarantee, before: Guarantee | undefined): Promise<boolean> {
  if (before === undefined) return quota.guaranteedMilli > 0;
  const [largest, was] = [largestOf(quota), largestOf(before)];
  if (quota.guaranteedMilli > before.guaranteedMilli || largest > was) return true;
  return largest < was && (await isPackable(tx, quota.gpuType));
}

function withoutTeam({ teamId: _, ...rest }: typeof quotas.$inferSelect) {
  return rest;
}

async function refuseBeyondCapacity(
  tx: Context,
  teamId: string,
  quota: { gpuType: string; guaranteedMilli: number },
): Promise<void> {
  const capacity = (await capacityByType(tx, quota.gpuType)).get(quota.gpuType) ?? 0;
  const [others] = await tx.db
    .select({ milli: sql<number>`coalesce(sum(${quotas.guaranteedMilli}), 0)::int` })
    .from(quotas)
    .where(and(eq(quotas.gpuType, quota.gpuType), ne(quotas.teamId, teamId)));
  const left = Math.max(0, capacity - (others?.milli ?? 0));
  if (quota.guaranteedMilli <= left) return;
  throw new SluiceError(
    "quota",
    `The pool has ${gpus3(capacity)} ${quota.gpuType} and other teams are guaranteed ${gpus3(others?.milli ?? 0)}: ` +
      `at most ${gpus3(left)} can be guaranteed to this team.`,
    { capacityMilli: capacity, leftMilli: left },
  );
}

/** 500 → "0.5". */
function gpus3(milli: number): string {
  return (milli / 1000).toFixed(3).replace(/0{1,2}$/, "");
}
