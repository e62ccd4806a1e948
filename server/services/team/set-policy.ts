import { eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type SetPolicyInput, setPolicyInput, type TeamPolicy } from "#server/contracts/sharing.ts";
import { teamPolicies, teams } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";

/** Sets how long a team's leases last, when idle ones end, and with whom its leases share cards. */
export async function setPolicy(ctx: Context, raw: SetPolicyInput): Promise<TeamPolicy> {
  authorize(ctx.principal, "team.set-policy");
  const { teamId, ...policy } = parse(setPolicyInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const [team] = await tx.db.select({ id: teams.id }).from(teams).where(eq(teams.id, teamId));
    if (team === undefined) throw new SluiceError("not-found", "There is no such team.");
    await tx.db
      .insert(teamPolicies)
      .values({ teamId, ...policy })
      .onConflictDoUpdate({ target: teamPolicies.teamId, set: policy });
    await audit(tx, { action: "team.set-policy", subject: teamId, teamId, detail: policy });
    return policy;
  });
}
