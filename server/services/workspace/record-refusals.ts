import { sql } from "drizzle-orm";
import type { Database, Transaction } from "#server/db/client.ts";
import { notify } from "#server/live.ts";

/** Maximum hosts and ports that are kept for a workspace. The oldest are deleted. */
export const MOST_REFUSALS = 50;
/** Maximum characters of a host name; programs may ask for longer text. */
const LONGEST_HOST = 253;
const LONGEST_REASON = 1_000;
const MOST_COUNT = 2 ** 31 - 1;

/** A connection that the outgoing network policy of the team refused. `reason` is a sentence with the rule. */
export type RefusedConnection = { host: string; port: number; reason: string };
/** `count`: refused connections to this host and port since the last record, one unless given. */
export type CountedRefusal = RefusedConnection & { count?: number };

/**
 * Adds refused connections of a workspace to those recorded before, and tells its pages. Host and reason are a tenant's
 * text. Connections of a workspace that was removed meanwhile are left out.
 */
export async function recordRefusals(
  db: Database | Transaction,
  workspaceId: string,
  refusals: readonly CountedRefusal[],
  now = new Date(),
): Promise<void> {
  if (refusals.length === 0) return;
  const rows = JSON.stringify(totals(refusals));
  await db.transaction(async (tx) => {
    // The order keeps two writers of one workspace from waiting for each other.
    await tx.execute(sql`
      insert into egress_refusals as known (workspace_id, host, port, reason, count, last_at)
      select w.id, r.host, r.port, r.reason, r.count, ${now.toISOString()}::timestamptz
      from json_to_recordset(${rows}::json) as r(host text, port int, reason text, count int)
      join workspaces w on w.id = ${workspaceId} and w.desired <> 'removed'
      order by r.host, r.port
      on conflict (workspace_id, host, port) do update set
        count = least(known.count::bigint + excluded.count, ${MOST_COUNT}),
        reason = excluded.reason,
        last_at = greatest(known.last_at, excluded.last_at)`);
    await tx.execute(sql`
      delete from egress_refusals where workspace_id = ${workspaceId} and (host, port) in (
        select host, port from egress_refusals where workspace_id = ${workspaceId}
        order by last_at desc, host, port offset ${MOST_REFUSALS}
      )`);
    await notify(tx, "usage", workspaceId);
  });
}

/** One entry for each host and port with its last reason; of more than are kept, the last ones. */
function totals(refusals: readonly CountedRefusal[]): Required<CountedRefusal>[] {
  const found = new Map<string, Required<CountedRefusal>>();
  for (const { host, port, reason, count = 1 } of refusals) {
    const entry = { host: storable(host, LONGEST_HOST), port, reason: storable(reason, LONGEST_REASON) };
    const key = `${entry.host} ${port}`;
    const before = found.get(key)?.count ?? 0;
    found.delete(key);
    found.set(key, { ...entry, count: Math.min(before + count, MOST_COUNT) });
  }
  return [...found.values()].slice(-MOST_REFUSALS);
}

/** Without what PostgreSQL's text cannot hold, and cut off where it is too long. */
function storable(text: string, longest: number): string {
  return text.replaceAll("\0", "").slice(0, longest).toWellFormed();
}
