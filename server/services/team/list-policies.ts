import { and, count, eq, isNotNull, isNull, ne, sql } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { compareNames } from "#server/contracts/names.ts";
import type { TeamPolicyList } from "#server/contracts/sharing.ts";
import { teamPolicies, teams, workspaces } from "#server/db/schema/index.ts";
import { policyEverywhere, policyView } from "./policy-view.ts";

/** Every team's policy, by name, for admins: what each says itself, and what counts for it. */
export async function listPolicies(ctx: Context): Promise<TeamPolicyList> {
  authorize(ctx.principal, "team.list-policies");
  const [rows, counted, everywhere] = await Promise.all([
    ctx.db
      .select({ id: teams.id, name: teams.name, policy: teamPolicies })
      .from(teams)
      .leftJoin(teamPolicies, eq(teamPolicies.teamId, teams.id))
      .where(isNull(teams.archivedAt)),
    ctx.db
      .select({
        teamId: workspaces.teamId,
        workspaces: count(),
        attachThemselves: sql<number>`count(*) filter (where ${workspaces.gpuPolicy} = 'first-use')`.mapWith(Number),
      })
      .from(workspaces)
      // A pod that borrows is no workspace of anybody's.
      .where(and(ne(workspaces.desired, "removed"), isNotNull(workspaces.imageVersionId)))
      .groupBy(workspaces.teamId),
    policyEverywhere(ctx),
  ]);
  const counts = new Map(counted.map(({ teamId, ...each }) => [teamId, each]));
  const found = rows.map(({ policy, ...team }) => ({
    ...team,
    policy: policyView(policy, everywhere),
    ...(counts.get(team.id) ?? { workspaces: 0, attachThemselves: 0 }),
  }));
  return { teams: found.sort((a, b) => compareNames(a.name, b.name)) };
}
