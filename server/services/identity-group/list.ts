import { asc, eq } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { IdentityGroupList } from "#server/contracts/identity-group.ts";
import { identityGroups, teams } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";

/** What groups of the identity provider give here. */
export async function list(ctx: Context): Promise<IdentityGroupList> {
  authorize(ctx.principal, "identity-group.list");
  const { SLUICE_OIDC_ISSUER: issuer, SLUICE_OIDC_GROUPS_CLAIM: claim } = env();
  const { id, name, teamId, role } = identityGroups;
  const groups = await ctx.db
    .select({ id, name, teamId, teamName: teams.name, role })
    .from(identityGroups)
    .leftJoin(teams, eq(teams.id, identityGroups.teamId))
    .orderBy(asc(name), asc(teams.name));
  return { groups, claim: issuer === undefined ? null : claim };
}
