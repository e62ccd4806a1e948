import { type SQL, sql } from "drizzle-orm";
import type { Principal } from "#server/auth/principal.ts";

export type GivenRole = "viewer" | "editor";

/**
 * What the owner of a workspace has given to a person, a column for any query of `workspaces`: null is nothing. It holds
 * as long as the owner could come in: whoever left the team, or was disabled, lets nobody else work on its quota.
 */
export function givenRole(userId: SQL | string): SQL<GivenRole | null> {
  // Written out: in a query of one table, columns would lose the table's name.
  return sql`(
    select c.role from workspace_collaborators c
    join memberships m on m.team_id = workspaces.team_id and m.user_id = workspaces.owner_id
    join users o on o.id = workspaces.owner_id and o.disabled_at is null
    where c.workspace_id = workspaces.id and c.user_id = ${userId}
  )`;
}

/** The same for whoever asks; machines are given nothing. */
export const roleOf = (principal: Principal): SQL<GivenRole | null> =>
  principal.kind === "user" ? givenRole(principal.userId) : sql`null`;
