import { eq } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { teamPolicies } from "#server/db/schema/index.ts";
import { DEFAULT_MAX_LEASE_SECONDS } from "./policy.ts";

/** How long one lease of a team may be, extensions included, seconds. */
export async function longestLeaseSeconds(ctx: Context, teamId: string): Promise<number> {
  const [policy] = await ctx.db.select().from(teamPolicies).where(eq(teamPolicies.teamId, teamId)).limit(1);
  return policy?.maxLeaseSeconds ?? DEFAULT_MAX_LEASE_SECONDS;
}
