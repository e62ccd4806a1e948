/** Who calls the broker: a workspace, by the credential its launcher put into it. */
import { and, eq, isNull } from "drizzle-orm";
import { anonymous, type Principal } from "#server/auth/principal.ts";
import type { Database, Transaction } from "#server/db/client.ts";
import { memberships, users, workspaces } from "#server/db/schema/index.ts";
import { hashSecret } from "#server/ids.ts";

/**
 * The workspace of an `Authorization: Bearer slw_…` header, `anonymous` when it is none. A credential holds only
 * while the workspace is wanted running and its owner works in its team: one copied out of a stopped workspace opens
 * nothing, and whoever left the team or was disabled borrows nothing more.
 */
export async function principalFromCredential(
  db: Database | Transaction,
  authorization: string | null | undefined,
): Promise<Principal> {
  const secret = /^Bearer (slw_[A-Za-z0-9_-]{43})$/i.exec(authorization ?? "")?.[1];
  if (secret === undefined) return anonymous;
  const [row] = await db
    .select({ id: workspaces.id, teamId: workspaces.teamId, ownerId: workspaces.ownerId })
    .from(workspaces)
    .innerJoin(memberships, and(eq(memberships.teamId, workspaces.teamId), eq(memberships.userId, workspaces.ownerId)))
    .innerJoin(users, and(eq(users.id, workspaces.ownerId), isNull(users.disabledAt)))
    .where(and(eq(workspaces.credentialHash, hashSecret(secret)), eq(workspaces.desired, "running")));
  if (row === undefined) return anonymous;
  return { kind: "workspace", workspaceId: row.id, teamId: row.teamId, userId: row.ownerId };
}
