import { asc, eq } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { type WorkspaceInput, workspaceInput } from "#server/contracts/workspace.ts";
import type { WorkspaceCollaborators } from "#server/contracts/workspace-collaborator.ts";
import { users, workspaceCollaborators } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { parse } from "#server/parse.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";

/** Whom the owner of a workspace has invited, by name, and the link for them. */
export async function list(ctx: Context, raw: WorkspaceInput): Promise<WorkspaceCollaborators> {
  const { id } = parse(workspaceInput, raw);
  await loadWorkspace(ctx, id, "workspace.read");
  const rows = await ctx.db
    .select({ given: workspaceCollaborators, name: users.name, email: users.email, disabledAt: users.disabledAt })
    .from(workspaceCollaborators)
    .innerJoin(users, eq(users.id, workspaceCollaborators.userId))
    .where(eq(workspaceCollaborators.workspaceId, id))
    .orderBy(asc(users.name), asc(users.id));
  return {
    collaborators: rows.map(({ given, name, email, disabledAt }) => ({
      ...{ userId: given.userId, name, email, role: given.role, version: given.version },
      ...{ since: given.createdAt.toISOString(), disabled: disabledAt !== null },
    })),
    link: new URL(`/shared/${id}`, env().SLUICE_PORTAL_URL).href,
  };
}
