/** Who waits, as rows: found, counted and paged by the database. */
import { type SQL, sql } from "drizzle-orm";
import type { QueueEntry } from "#server/contracts/gpu-server.ts";
import type { Database, Transaction } from "#server/db/client.ts";
import { hasWords } from "#server/db/search.ts";
import { is } from "#server/services/utilisation/ledger.ts";

type Db = Database | Transaction;

/** What is known of a request without judging it. */
export type QueuedRow = Omit<QueueEntry, "position" | "of" | "reason" | "rule" | "likelySeconds" | "soonestSeconds">;

type Asked = {
  gpuType?: string | undefined;
  /** Words, each in the type, the person, the team, the workspace or the label. */
  search?: string | undefined;
  /** The place at the end of the page before. */
  after?: string | undefined;
  /** Of these teams alone; undefined: of all. */
  teamIds?: readonly string[] | undefined;
  /** undefined: all of them. */
  limit?: number | undefined;
};

/** `since`: milliseconds since 1970. */
type Found = { total: number; rows: (Omit<QueuedRow, "waitingSince"> & { since: number; place: string })[] };

/** How many wait for each type that somebody waits for, whoever they are. */
export async function queuedByType(db: Db): Promise<ReadonlyMap<string, number>> {
  const rows = await db.execute<{ gpuType: string; count: number }>(sql`
    select gpu_type as "gpuType", count(*)::int from lease_requests where state = 'queued' group by 1 order by 1`);
  return new Map(rows.map(({ gpuType, count }) => [gpuType, count]));
}

/** A page of those who wait, type by type, the oldest first, and how many match on all pages. */
export async function readQueued(
  db: Db,
  { gpuType, search, after, teamIds, limit }: Asked,
): Promise<{ rows: QueuedRow[]; rowCount: number; next: string | null }> {
  const words = hasWords(search, (contains) => [
    ...[sql`r.gpu_type`, sql`u.name`, sql`t.name`, sql`w.name`, sql`r.owner->>'label'`].map(contains),
  ]);
  const teams = teamIds === undefined ? sql`true` : sql`r.team_id = any(${sql.param(teamIds)}::text[])`;
  // One more than the page tells whether there is another.
  const most = limit === undefined ? sql`` : sql`limit ${limit + 1}::int`;
  const [{ total, rows } = { total: 0, rows: [] }] = await db.execute<Found>(sql`
    with matching as materialized (
      select r.id, r.gpu_type collate "C" as gpu_type, round(date_part('epoch', r.created_at) * 1000)::bigint as since,
        r.milli, t.name as team, u.name as person, w.name as workspace, r.owner->>'label' as label
      from lease_requests r join teams t on t.id = r.team_id join users u on u.id = r.user_id
        join workspaces w on w.id = r.workspace_id
      where r.state = 'queued' and ${is(sql`r.gpu_type`, gpuType)} and ${teams} and ${sql.join([sql`true`, ...words], sql` and `)}
    ), page as (
      select * from matching where ${behind(after)} order by gpu_type, since, id collate "C" ${most}
    )
    select (select count(*)::int from matching) as total, (
      select coalesce(json_agg(json_build_object(
        'requestId', id, 'gpuType', gpu_type, 'milli', milli, 'teamName', team, 'userName', person,
        'workspaceName', workspace, 'label', label, 'since', since, 'place', concat_ws(' ', gpu_type, since, id)
      ) order by gpu_type, since, id collate "C"), '[]') from page) as rows`);
  const shown = rows.slice(0, limit);
  return {
    rows: shown.map(({ since, place: _, ...row }) => ({ ...row, waitingSince: new Date(since).toISOString() })),
    rowCount: total,
    next: rows.length > shown.length ? (shown.at(-1)?.place ?? null) : null,
  };
}

/** What stands behind a place: the request that was there may wait no more. */
function behind(place: string | undefined): SQL {
  const [gpuType, since, id] = place?.split(" ") ?? [];
  if (gpuType === undefined || since === undefined || id === undefined) return sql`true`;
  return sql`(gpu_type, since, id collate "C") > (${gpuType}::text collate "C", ${since}::bigint, ${id}::text collate "C")`;
}
