import { and, eq } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { memberships, users, workspaces } from "#server/db/schema/index.ts";
import type { Filter } from "./ledger.ts";

/** The names of the one person and the one workspace that are asked for, where they belong to the team that is. */
export async function whose(
  ctx: Context,
  { teamId, userId, workspaceId }: Filter,
): Promise<{ person: string | null; workspace: string | null }> {
  const [person] =
    userId === undefined
      ? []
      : await ctx.db
          .selectDistinct({ name: users.name })
          .from(users)
          .leftJoin(memberships, eq(memberships.userId, users.id))
          .where(and(eq(users.id, userId), teamId === undefined ? undefined : eq(memberships.teamId, teamId)));
  const [workspace] =
    workspaceId === undefined
      ? []
      : await ctx.db
          .select({ name: workspaces.name })
          .from(workspaces)
          .where(and(eq(workspaces.id, workspaceId), teamId === undefined ? undefined : eq(workspaces.teamId, teamId)));
  return { person: person?.name ?? null, workspace: workspace?.name ?? null };
}
