/** Whom a change of a lease, a request or a workspace concerns: found once for each change, not once for each reader. */
import { sql } from "drizzle-orm";
import type { Database } from "#server/db/client.ts";
import type { subscribe } from "#server/live.ts";

/**
 * Tells the people behind each change: who holds or asks, whose workspace it is, with whom that is shared, or
 * the person whom the change names (who is no collaborator any more); null, everybody, where nobody knows. Changes that come while others are looked up are looked up together.
 */
export function watchConcerned(
  on: { db: Database; subscribe: typeof subscribe },
  tell: (userId: string | null) => void,
): () => void {
  const waiting = new Set<string>();
  let over = false;
  let reading = false;
  const readOn = async () => {
    if (reading) return;
    reading = true;
    while (waiting.size > 0 && !over) {
      const ids = [...waiting];
      waiting.clear();
      const people = await concerned(on.db, ids).catch(() => [null]);
      if (!over) for (const userId of people) tell(userId);
    }
    reading = false;
  };
  const unsubscribe = on.subscribe(["lease", "workspace"], ({ id }) => {
    if (id === null) return tell(null);
    waiting.add(id);
    void readOn();
  });
  return () => {
    over = true;
    unsubscribe();
  };
}

/** Each once; null among them where one of the ids names none of these, like that of a stop of all leases. */
async function concerned(db: Database, ids: readonly string[]): Promise<(string | null)[]> {
  const rows = await db.execute<{ user_id: string | null }>(sql`
    with changed as (select unnest(${sql.param(ids)}::text[]) as id),
      known as (
        select id, user_id, workspace_id from leases where id in (select id from changed)
        union all select id, user_id, workspace_id from lease_requests where id in (select id from changed)
        union all select id, owner_id, id from workspaces where id in (select id from changed)
        union all select id, id, null from users where id in (select id from changed)
      )
    select user_id from known
    union select c.user_id from workspace_collaborators c where c.workspace_id in (select workspace_id from known)
    union select null from changed where id not in (select id from known)`);
  return rows.map((row) => row.user_id);
}
