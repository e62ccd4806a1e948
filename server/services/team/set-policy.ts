import { eq, sql } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type SetPolicyInput, setPolicyInput, type TeamPolicyView } from "#server/contracts/sharing.ts";
import { teamPolicies, teams } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { knownGpuTypes, lockGpuTypes } from "#server/services/lease/world.ts";
import { refuseStale } from "#server/services/refuse-stale.ts";
import { readPolicy } from "./read-policy.ts";
import { refuseUnpackable } from "./refuse-unpackable.ts";

/** Sets how long a team's leases last, when idle ones end and how they are taken back, with whom they share cards, and who chooses sizes freely. */
export async function setPolicy(ctx: Context, raw: SetPolicyInput): Promise<TeamPolicyView> {
  const { teamId, version, ...policy } = parse(setPolicyInput, raw);
  authorize(ctx.principal, "team.set-policy", { teamId });
  return await inTransaction(ctx, async (tx) => {
    // Proved below on the guarantees as they are then; no grant is decided on half an edit.
    const types = await lockGpuTypes(tx.db, await knownGpuTypes(tx.db));
    // Two first edits at once would find no policy to wait for.
    const [team] = await tx.db.select().from(teams).where(eq(teams.id, teamId)).for("update");
    if (team === undefined) throw new SluiceError("not-found", "There is no such team.");
    const [current] = await tx.db.select().from(teamPolicies).where(eq(teamPolicies.teamId, teamId));
    refuseStale(version, current, `the policy of ${team.name}`);
    await tx.db
      .insert(teamPolicies)
      .values({ teamId, ...policy })
      .onConflictDoUpdate({
        target: teamPolicies.teamId,
        set: { ...policy, version: sql`${teamPolicies.version} + 1` },
      });
    // Who shares cards with fewer may need more of them for what is guaranteed.
    const [from, to] = [current?.coTenancy ?? "any", policy.coTenancy];
    if (from !== to && !(from === "own-team" && to === "any")) {
      for (const gpuType of types) await refuseUnpackable(tx, gpuType);
    }
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
