import { and, eq, ne } from "drizzle-orm";
import { isAllowed } from "#server/auth/authorize.ts";
import { authorize, type Context } from "#server/context.ts";
import { type WorkspaceInput, workspaceInput } from "#server/contracts/workspace.ts";
import type { WorkspaceLink } from "#server/contracts/workspace-collaborator.ts";
import { users, workspaces } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { roleOf } from "#server/services/workspace/given-role.ts";
import { resourceOf } from "#server/services/workspace/load.ts";

/**
 * Where a shared link leads: whoever was invited goes in; anybody else who is signed in and holds the link, which nobody
 * can guess, learns whom to ask, and nothing about the workspace.
 */
export async function readLink(ctx: Context, raw: WorkspaceInput): Promise<WorkspaceLink> {
  authorize(ctx.principal, "workspace.read-link");
  const { id } = parse(workspaceInput, raw);
  const [found] = await ctx.db
    .select({ row: workspaces, role: roleOf(ctx.principal), name: users.name, email: users.email })
    .from(workspaces)
    .innerJoin(users, eq(users.id, workspaces.ownerId))
    .where(and(eq(workspaces.id, id), ne(workspaces.desired, "removed")));
  if (found === undefined) throw new SluiceError("not-found", "There is no such workspace. It may have been removed.");
  const { row, role, name, email } = found;
  return { owner: { name, email }, invited: isAllowed(ctx.principal, "workspace.read", resourceOf(row, role)) };
}
