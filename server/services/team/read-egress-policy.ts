import { eq } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { EgressPolicyView } from "#server/contracts/egress.ts";
import { type TeamInput, teamInput } from "#server/contracts/team.ts";
import { teams } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";

/** A team's outgoing network policy. */
export async function readEgressPolicy(ctx: Context, raw: TeamInput): Promise<EgressPolicyView> {
  const { id } = parse(teamInput, raw);
  authorize(ctx.principal, "team.read", { teamId: id });
  const [row] = await ctx.db
    .select({ policy: teams.egressPolicy, version: teams.egressPolicyVersion })
    .from(teams)
    .where(eq(teams.id, id));
  if (row === undefined) throw new SluiceError("not-found", "This team does not exist. Check the team id.");
  return { ...row.policy, version: row.version };
}
