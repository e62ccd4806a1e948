import { eq } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { TeamPolicyView } from "#server/contracts/sharing.ts";
import { type TeamInput, teamInput } from "#server/contracts/team.ts";
import { teamPolicies } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";
import { get } from "./get.ts";
import { policyEverywhere, policyView } from "./policy-view.ts";

/** A team's policy, and what counts where it says nothing. */
export async function readPolicy(ctx: Context, raw: TeamInput): Promise<TeamPolicyView> {
  const { id } = parse(teamInput, raw);
  authorize(ctx.principal, "team.read", { teamId: id });
  await get(ctx, { id });
  const [row] = await ctx.db.select().from(teamPolicies).where(eq(teamPolicies.teamId, id));
  return policyView(row, await policyEverywhere(ctx));
}
