/** Who calls the broker: a workspace, by the credential its launcher put into it. */
import { and, eq, exists, isNotNull, isNull, or, sql } from "drizzle-orm";
import { anonymous, type Principal } from "#server/auth/principal.ts";
import { among } from "#server/db/among.ts";
import type { Database, Transaction } from "#server/db/client.ts";
import { imageVersions, memberships, users, workspaces } from "#server/db/schema/index.ts";
import { isAway } from "#server/errors.ts";
import { Group, groupOf } from "#server/group.ts";
import { hashSecret } from "#server/ids.ts";

/**
 * The workspace of an `Authorization: Bearer slw_…` header, `anonymous` when it is none. A credential holds only
 * while the workspace is wanted running and its owner works in its team: one copied out of a stopped workspace opens
 * nothing, and a former or disabled member borrows nothing more. The test workspace of a proposed environment
 * acts for the team, so an admin may propose for a team of others; its credential holds while the check runs.
 */
export async function principalFromCredential(
  db: Database | Transaction,
  authorization: string | null | undefined,
): Promise<Principal> {
  const secret = /^Bearer (slw_[A-Za-z0-9_-]{43})$/i.exec(authorization ?? "")?.[1];
  if (secret === undefined) return anonymous;
  return await owners(db).join(hashSecret(secret));
}

/** Workspaces by the hash of their credential; those who call at one time are looked up together. */
const owners = groupOf<Database | Transaction, Group<string, Principal>>((db) => {
  const { id, teamId, ownerId, credentialHash } = workspaces;
  const underTest = db
    .select({ id: imageVersions.id })
    .from(imageVersions)
    .where(
      and(
        eq(imageVersions.id, workspaces.imageVersionId),
        eq(imageVersions.teamId, teamId),
        eq(imageVersions.checkWorkspaceId, id),
        eq(imageVersions.check, "running"),
      ),
    );
  const query = db
    .select({ id, teamId, ownerId, credentialHash })
    .from(workspaces)
    .leftJoin(memberships, and(eq(memberships.teamId, teamId), eq(memberships.userId, ownerId)))
    .innerJoin(users, and(eq(users.id, ownerId), isNull(users.disabledAt)))
    .where(
      and(
        among(credentialHash, sql.placeholder("hashes")),
        eq(workspaces.desired, "running"),
        or(isNotNull(memberships.userId), exists(underTest)),
      ),
    )
    .prepare("owners");
  return new Group<string, Principal>(async (hashes) => {
    const rows = await query.execute({ hashes: JSON.stringify(hashes) });
    const known = new Map(rows.map((row) => [row.credentialHash, row]));
    return hashes.map((hash) => {
      const row = known.get(hash);
      const value: Principal =
        row === undefined
          ? anonymous
          : { kind: "workspace", workspaceId: row.id, teamId: row.teamId, userId: row.ownerId };
      return { ok: true as const, value };
    });
  }, isAway);
});
