import { authorize, type Context } from "#server/context.ts";
import { type QuotaEffects, type SetQuotaInput, setQuotaInput } from "#server/contracts/team.ts";
import { SluiceError, withoutField } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { WHOLE } from "#server/scheduler/amount.ts";
import { spentAt } from "#server/scheduler/budget.ts";
import { type Lease, leasesOf, usedBy } from "#server/scheduler/share.ts";
import type { World } from "#server/scheduler/types.ts";
import { loadWorld, lockGpuType } from "#server/services/lease/world.ts";
import { rolledBack } from "#server/services/rolled-back.ts";
import { setQuota } from "./set-quota.ts";

/**
 * What saving a quota would do: it is saved, the queue goes on, and all of it is undone. So this cannot say anything
 * else than what will happen, as long as nothing changes meanwhile.
 */
export async function previewQuota(ctx: Context, raw: SetQuotaInput): Promise<QuotaEffects> {
  authorize(ctx.principal, "team.set-quota");
  const input = parse(setQuotaInput, raw);
  return await rolledBack(ctx, async (tx) => {
    await lockGpuType(tx.db, input.gpuType);
    const before = await loadWorld(tx.db, input.gpuType, tx.now());
    try {
      await setQuota(tx, raw);
    } catch (error) {
      if (!(error instanceof SluiceError) || error.code === "not-found") throw error;
      return effects(input, before, before, withoutField(error.message));
    }
    return effects(input, before, await loadWorld(tx.db, input.gpuType, tx.now()), null);
  });
}

function effects(
  { teamId, limitMilli, personMilli = null }: SetQuotaInput,
  before: World,
  after: World,
  refusal: string | null,
): QuotaEffects {
  // Somebody's parked memory may lie on one that was removed, and is named to them until they ask anew.
  const capacityMilli = after.devices.filter((device) => device.state !== "gone").length * WHOLE;
  const guaranteed = [...after.quotas.values()].reduce((sum, quota) => sum + quota.guaranteedMilli, 0);
  const known = new Set(leasesOf(before.holdings).map(({ id }) => id));
  const warned = new Set(leasesOf(before.holdings).flatMap((lease) => (lease.first.notice ? [lease.id] : [])));
  const now = leasesOf(after.holdings);
  return {
    refusal,
    capacityMilli,
    unallocatedMilli: capacityMilli - guaranteed,
    usedMilli: usedBy(teamId, before),
    borrowedMilli: { before: borrowedBy(teamId, before), after: borrowedBy(teamId, after) },
    overLimitMilli: refusal === null ? Math.max(0, usedBy(teamId, before) - limitMilli) : 0,
    overCeiling: refusal === null && personMilli !== null ? aboveCeiling(teamId, before, personMilli) : [],
    granted: now.filter(({ id }) => !known.has(id)).map((lease) => affected(lease, after)),
    takenBack: now
      .filter(({ id, first }) => first.notice !== undefined && !warned.has(id))
      .map((lease) => affected(lease, after)),
    budget: budgetOf(teamId, after),
  };
}

function borrowedBy(teamId: string, world: World): number {
  return Math.max(0, usedBy(teamId, world) - (world.quotas.get(teamId)?.guaranteedMilli ?? 0));
}

function aboveCeiling(teamId: string, world: World, personMilli: number): QuotaEffects["overCeiling"] {
  const people = new Map<string, { who: string; milli: number }>();
  for (const { teamId: of, userId, who, milli } of world.holdings) {
    if (of === teamId) people.set(userId, { who, milli: (people.get(userId)?.milli ?? 0) + milli });
  }
  return [...people.values()].filter(({ milli }) => milli > personMilli);
}

function affected({ first, milli }: Lease, { quotas }: World): QuotaEffects["granted"][number] {
  return { who: first.who, teamName: quotas.get(first.teamId)?.teamName ?? "", milli };
}

function budgetOf(teamId: string, world: World): QuotaEffects["budget"] {
  const budget = world.quotas.get(teamId)?.budget;
  if (budget === undefined) return null;
  const at = spentAt(budget, usedBy(teamId, world), world.now);
  const { usedMilliHours, milliHours } = budget;
  return { usedMilliHours, milliHours, spentAt: at === undefined ? null : new Date(at).toISOString() };
}
