import { and, eq, ne } from "drizzle-orm";
import { type Action, isAllowed } from "#server/auth/authorize.ts";
import { authorize, type Context } from "#server/context.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";

export type WorkspaceRow = typeof workspaces.$inferSelect;

/**
 * The workspace, when the principal may do `action` to it. To somebody who may not even see it, it does not exist:
 * ids tell nothing. `lock` holds the row until the transaction ends, in the strength that does not stop the lease
 * API from writing rows that refer to it.
 */
export async function loadWorkspace(
  ctx: Context,
  id: string,
  action: Action,
  options: { lock?: boolean } = {},
): Promise<WorkspaceRow> {
  authorizeKnownPerson(ctx);
  const query = ctx.db
    .select()
    .from(workspaces)
    .where(and(eq(workspaces.id, id), ne(workspaces.desired, "removed")));
  const [row] = options.lock === true ? await query.for("no key update") : await query;
  const resource = row && { teamId: row.teamId, ownerId: row.ownerId, workspaceId: row.id };
  if (row === undefined || !isAllowed(ctx.principal, "workspace.read", resource)) {
    throw new SluiceError("not-found", "There is no such workspace, or it is not yours to see.");
  }
  authorize(ctx.principal, action, resource);
  return row;
}

function authorizeKnownPerson(ctx: Context): void {
  authorize(ctx.principal, "workspace.list");
}
