import { and, eq, ne } from "drizzle-orm";
import { type Action, isAllowed, type Resource } from "#server/auth/authorize.ts";
import { authorize, type Context } from "#server/context.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { type GivenRole, roleOf } from "./given-role.ts";

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
    .select({ row: workspaces, role: roleOf(ctx.principal) })
    .from(workspaces)
    .where(and(eq(workspaces.id, id), ne(workspaces.desired, "removed")));
  const [found] = options.lock === true ? await query.for("no key update", { of: workspaces }) : await query;
  const resource = found && resourceOf(found.row, found.role);
  if (found === undefined || !isAllowed(ctx.principal, "workspace.read", resource)) {
    throw new SluiceError("not-found", "There is no such workspace, or it is not yours to see.");
  }
  authorize(ctx.principal, action, resource);
  return found.row;
}

/** A workspace as the rules ask about it; `role` is what whoever asks was given there. */
export const resourceOf = ({ id, teamId, ownerId }: WorkspaceRow, role: GivenRole | null): Resource => ({
  ...{ teamId, ownerId, workspaceId: id, role },
});

function authorizeKnownPerson(ctx: Context): void {
  authorize(ctx.principal, "workspace.list");
}
