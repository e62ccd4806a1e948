import { and, eq, gt } from "drizzle-orm";
import { type Action, isAllowed } from "#server/auth/authorize.ts";
import { authorize, type Context } from "#server/context.ts";
import type { Transaction } from "#server/db/client.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { isRestorable } from "./kept-files.ts";
import type { WorkspaceRow } from "./load.ts";

/**
 * Loads a removed workspace that still has its files, if the principal may do `action` to it. Its row stays locked
 * until the transaction ends. Former collaborators no longer see it.
 */
export async function loadRemoved(
  tx: Context & { db: Transaction },
  id: string,
  action: Action,
): Promise<WorkspaceRow> {
  authorize(tx.principal, "workspace.list");
  const [row] = await tx.db
    .select()
    .from(workspaces)
    .where(and(eq(workspaces.id, id), isRestorable(), gt(workspaces.filesKeptUntil, tx.now())))
    .for("no key update");
  const resource = row && { teamId: row.teamId, ownerId: row.ownerId, workspaceId: id };
  if (row === undefined || !isAllowed(tx.principal, "workspace.read", resource)) {
    const message = "This removed workspace does not exist, or you have no access. Its files may be deleted already.";
    throw new SluiceError("not-found", message);
  }
  authorize(tx.principal, action, resource);
  return row;
}
