import { eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type EgressPolicyView, type SetEgressPolicyInput, setEgressPolicyInput } from "#server/contracts/egress.ts";
import { teams } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { refuseStale } from "#server/services/refuse-stale.ts";
import { readEgressPolicy } from "./read-egress-policy.ts";

/** Sets a team's outgoing network policy. It holds for each new connection of running workspaces too. */
export async function setEgressPolicy(ctx: Context, raw: SetEgressPolicyInput): Promise<EgressPolicyView> {
  const { teamId, version, mode, allow } = parse(setEgressPolicyInput, raw);
  authorize(ctx.principal, "team.set-egress-policy", { teamId });
  return await inTransaction(ctx, async (tx) => {
    const [team] = await tx.db.select().from(teams).where(eq(teams.id, teamId)).for("no key update");
    if (team === undefined) throw new SluiceError("not-found", "This team does not exist. Check the team id.");
    refuseStale(version, { version: team.egressPolicyVersion }, `the outgoing network policy of ${team.name}`);
    const policy = { mode, allow: [...new Set(allow)] };
    await tx.db
      .update(teams)
      .set({ egressPolicy: policy, egressPolicyVersion: team.egressPolicyVersion + 1 })
      .where(eq(teams.id, teamId));
    await audit(tx, {
      action: "team.set-egress-policy",
      subject: teamId,
      teamId,
      detail: { before: team.egressPolicy, after: policy },
    });
    await notify(tx.db, "pool", teamId);
    return await readEgressPolicy(tx, { id: teamId });
  });
}
