import { and, eq, gt, sql } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type SetPolicyInput, setPolicyInput, type TeamPolicyView } from "#server/contracts/sharing.ts";
import { quotaRequests, quotas, reservations, teamPolicies, teams } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import type { CoTenancy } from "#server/scheduler/types.ts";
import { knownGpuTypes, lockGpuTypes } from "#server/services/lease/world.ts";
import { refuseStale } from "#server/services/refuse-stale.ts";
import { readPolicy } from "./read-policy.ts";
import { isPackable, refuseUnpackable } from "./refuse-unpackable.ts";

/** Sets how long a team's leases last, when idle ones end and how they are taken back, with whom they share cards, and who chooses sizes freely. */
export async function setPolicy(ctx: Context, raw: SetPolicyInput): Promise<TeamPolicyView> {
  const { teamId, version, ...policy } = parse(setPolicyInput, raw);
  authorize(ctx.principal, "team.set-policy", { teamId });
  return await inTransaction(ctx, async (tx) => {
    // Proved below on the guarantees as they are then; no grant is decided on half an edit.
    const types = await lockGpuTypes(tx.db, await knownGpuTypes(tx.db));
    // Two first edits at once would find no policy to wait for. Whoever joins meanwhile does not wait: that refers to the
    // team's row, and may need the types' locks next.
    const [team] = await tx.db.select().from(teams).where(eq(teams.id, teamId)).for("no key update");
    if (team === undefined) throw new SluiceError("not-found", "There is no such team.");
    const [current] = await tx.db.select().from(teamPolicies).where(eq(teamPolicies.teamId, teamId));
    refuseStale(version, current, `the policy of ${team.name}`);
    const atStake = await typesAtStake(tx, types, { teamId, from: current?.coTenancy ?? "any", to: policy.coTenancy });
    await tx.db
      .insert(teamPolicies)
      .values({ teamId, ...policy })
      .onConflictDoUpdate({
        target: teamPolicies.teamId,
        set: { ...policy, version: sql`${teamPolicies.version} + 1` },
      });
    for (const gpuType of atStake) await refuseUnpackable(tx, gpuType);
    const before = current && { ...current, teamId: undefined, version: undefined };
    await audit(tx, {
      action: "team.set-policy",
      subject: teamId,
      teamId,
      detail: { ...policy, before: before ?? null },
    });
    await notify(tx.db, "pool", teamId);
    return await readPolicy(tx, { id: teamId });
  });
}

/** The types of which this change may break a promise: call before it is made. */
async function typesAtStake(
  tx: Context,
  types: readonly string[],
  { teamId, from, to }: { teamId: string; from: CoTenancy; to: CoTenancy },
): Promise<string[]> {
  if (from === to || (from === "own-team" && to === "any")) return [];
  const promised = await promisedTypes(tx, teamId);
  const found = types.filter((gpuType) => promised.has(gpuType));
  if (from !== "whole-cards") return found;
  // Parts of a card may need more cards than whole ones: three leases of 0.6 do not fit the two cards of 1.8. Where the
  // promises do not fit as it is, sharing more is a way out.
  const kept: string[] = [];
  for (const gpuType of found) if (await isPackable(tx, gpuType)) kept.push(gpuType);
  return kept;
}

/** The types of which a team is promised something, now or later. */
async function promisedTypes({ db, now }: Context, teamId: string): Promise<Set<string>> {
  const [ofQuota, more, reserved] = await Promise.all([
    db.select({ gpuType: quotas.gpuType }).from(quotas).where(eq(quotas.teamId, teamId)),
    db
      .select({ gpuType: quotaRequests.gpuType })
      .from(quotaRequests)
      .where(
        and(eq(quotaRequests.teamId, teamId), eq(quotaRequests.state, "approved"), gt(quotaRequests.endsAt, now())),
      ),
    db
      .select({ gpuType: reservations.gpuType })
      .from(reservations)
      .where(and(eq(reservations.teamId, teamId), gt(reservations.endsAt, now()))),
  ]);
  return new Set([...ofQuota, ...more, ...reserved].map(({ gpuType }) => gpuType));
}
