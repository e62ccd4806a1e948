import { and, eq, exists, or, type SQL, sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { leaseIntervals, memberships, users, workspaces } from "#server/db/schema/index.ts";
import type { Filter } from "./ledger.ts";

/**
 * The names of the one person and the one workspace that are asked for, where they belong to the team that is; of
 * somebody who has left it, too, as long as what they held is told.
 */
export async function whose(
  ctx: Context,
  { teamId, userId, workspaceId }: Filter,
): Promise<{ person: string | null; workspace: string | null }> {
  const [person] =
    userId === undefined
      ? []
      : await ctx.db
          .select({ name: users.name })
          .from(users)
          .where(and(eq(users.id, userId), teamId === undefined ? undefined : isOrWasIn(ctx, userId, teamId)));
  const [workspace] =
    workspaceId === undefined
      ? []
      : await ctx.db
          .select({ name: workspaces.name })
          .from(workspaces)
          .where(and(eq(workspaces.id, workspaceId), teamId === undefined ? undefined : eq(workspaces.teamId, teamId)));
  return { person: person?.name ?? null, workspace: workspace?.name ?? null };
}

function isOrWasIn(ctx: Context, userId: string, teamId: string): SQL | undefined {
  const one = { one: sql`1` };
  const isIn = and(eq(memberships.userId, userId), eq(memberships.teamId, teamId));
  const held = and(eq(leaseIntervals.teamId, teamId), eq(leaseIntervals.userId, userId));
  return or(
    exists(ctx.db.select(one).from(memberships).where(isIn)),
    exists(ctx.db.select(one).from(leaseIntervals).where(held)),
  );
}
