/**
 * The queue of a GPU type. It may be long, so it travels by column: PostgreSQL writes, and we read, each name once
 * instead of once a request.
 */
import { type SQL, sql } from "drizzle-orm";
import type { Database, Transaction } from "#server/db/client.ts";
import type { leaseRequests } from "#server/db/schema/index.ts";
import type { Kind, Needs, Waiting } from "#server/scheduler/types.ts";

/** What most requests do not have is named by request; null columns: nobody waits. */
export type QueueColumns = {
  [column in keyof Each]: Each[column][] | null;
} & {
  pinned: Record<string, string> | null;
  needs: Record<string, Needs> | null;
  kept: Record<string, string[]> | null;
};

type Each = {
  id: string;
  teamId: string;
  userId: string;
  who: string;
  milli: number;
  memoryBytes: number;
  guaranteedOnly: number;
  /** Milliseconds since 1970. */
  createdAt: number;
  forSeconds: number;
  rank: number;
  kind: Kind;
  maxDevices: number;
};

/** Of a queue that is known already: who waits, and what may have changed. */
export type QueueIds = Pick<QueueColumns, "id" | "kept">;

/** Which rows `r` of `lease_requests` wait for a type. */
export const waitsFor = (gpuType: SQL): SQL => sql`r.gpu_type = ${gpuType} and r.state = 'queued'`;

const KEPT = sql`json_object_agg(r.id, r.kept_gpu_ids) filter (where r.kept_gpu_ids is not null)`;

/** One JSON value with who waits of these, and for whom devices are kept. */
export function queueIds(which: SQL): SQL {
  return sql`(select json_build_object('id', json_agg(r.id), 'kept', ${KEPT}) from lease_requests r where ${which})`;
}

/** One JSON value with all that these have asked. */
export function queueColumns(which: SQL): SQL {
  return sql`(select json_build_object(
      'id', json_agg(r.id), 'teamId', json_agg(r.team_id), 'userId', json_agg(r.user_id), 'who', json_agg(u.name),
      'milli', json_agg(r.milli), 'memoryBytes', json_agg(r.memory_bytes), 'guaranteedOnly', json_agg(r.guaranteed_only),
      'createdAt', json_agg(round(date_part('epoch', r.created_at) * 1000)::bigint),
      'forSeconds', json_agg(r.for_seconds), 'rank', json_agg(r.rank), 'kind', json_agg(r.kind),
      'maxDevices', json_agg(r.max_devices),
      'pinned', json_object_agg(r.id, r.pinned_gpu_id) filter (where r.pinned_gpu_id is not null),
      'needs', json_object_agg(r.id, r.needs) filter (where r.needs is not null),
      'kept', ${KEPT})
    from lease_requests r join users u on u.id = r.user_id where ${which})`;
}

/** The queue as the scheduler sees it. */
export function queueFrom(columns: QueueColumns): Waiting[] {
  const { id, teamId, userId, who, milli, memoryBytes, guaranteedOnly, createdAt, forSeconds } = columns;
  const { rank, kind, maxDevices, pinned, needs, kept } = columns;
  return (id ?? []).map((requestId, at): Waiting => {
    const [pinnedGpuId, needed, keptGpuIds] = [pinned?.[requestId], needs?.[requestId], kept?.[requestId]];
    return {
      requestId,
      teamId: teamId?.[at] ?? "",
      userId: userId?.[at] ?? "",
      who: who?.[at] ?? "",
      milli: milli?.[at] ?? 0,
      memoryBytes: memoryBytes?.[at] ?? 0,
      guaranteedOnly: guaranteedOnly?.[at] === 1,
      createdAt: createdAt?.[at] ?? 0,
      lengthMs: (forSeconds?.[at] ?? 0) * 1000,
      rank: rank?.[at] ?? 0,
      kind: kind?.[at] ?? "interactive",
      maxDevices: maxDevices?.[at] ?? 1,
      ...(pinnedGpuId === undefined ? {} : { pinnedGpuId }),
      ...(needed === undefined ? {} : { needs: needed }),
      ...(keptGpuIds === undefined ? {} : { keptGpuIds }),
    };
  });
}

/** The queue of which some, or most, were read before: what a request asks does not change while it waits. */
export async function queueBeside(
  db: Database | Transaction,
  { id, kept }: QueueIds,
  known: ReadonlyMap<string, Waiting>,
): Promise<Waiting[]> {
  const ids = id ?? [];
  const fresh = await readRequests(
    db,
    ids.filter((requestId) => !known.has(requestId)),
  );
  const asked = new Map(fresh.map((waiting) => [waiting.requestId, waiting]));
  return ids.flatMap((requestId) => {
    const waiting = known.get(requestId) ?? asked.get(requestId);
    const keptGpuIds = kept?.[requestId];
    // One that has left since the ids were read is not there any more.
    if (waiting === undefined) return [];
    return waiting.keptGpuIds === undefined && keptGpuIds === undefined ? waiting : withKept(waiting, keptGpuIds);
  });
}

async function readRequests(db: Database | Transaction, ids: readonly string[]): Promise<Waiting[]> {
  if (ids.length === 0) return [];
  const among = sql`r.id in (select json_array_elements_text(${JSON.stringify(ids)}::json)) and r.state = 'queued'`;
  const [row] = await db.execute<{ queue: QueueColumns }>(sql`select ${queueColumns(among)} as queue`);
  return row === undefined ? [] : queueFrom(row.queue);
}

function withKept({ keptGpuIds: _, ...waiting }: Waiting, keptGpuIds: string[] | undefined): Waiting {
  return keptGpuIds === undefined ? waiting : { ...waiting, keptGpuIds };
}

/** A request that has just come, as the scheduler sees it. */
export function waitingOf(request: typeof leaseRequests.$inferSelect, who: string): Waiting {
  const { id, teamId, userId, milli, memoryBytes, guaranteedOnly, createdAt, forSeconds, rank, kind } = request;
  const { maxDevices, pinnedGpuId, needs, keptGpuIds } = request;
  return {
    ...{ requestId: id, teamId, userId, who, milli, memoryBytes, rank, kind, maxDevices },
    guaranteedOnly: guaranteedOnly === 1,
    createdAt: createdAt.getTime(),
    lengthMs: forSeconds * 1000,
    ...(pinnedGpuId === null ? {} : { pinnedGpuId }),
    ...(needs === null ? {} : { needs }),
    ...(keptGpuIds === null ? {} : { keptGpuIds }),
  };
}
