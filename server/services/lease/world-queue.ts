/**
 * The queue of a GPU type. It may be long, so it travels by column: PostgreSQL writes, and we read, each name once
 * instead of once a request.
 */
import { type SQL, sql } from "drizzle-orm";
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

/** One JSON value with the queue of a type. */
export function queueColumns(gpuType: SQL): SQL {
  return sql`(select json_build_object(
      'id', json_agg(r.id), 'teamId', json_agg(r.team_id), 'userId', json_agg(r.user_id), 'who', json_agg(u.name),
      'milli', json_agg(r.milli), 'memoryBytes', json_agg(r.memory_bytes), 'guaranteedOnly', json_agg(r.guaranteed_only),
      'createdAt', json_agg(round(date_part('epoch', r.created_at) * 1000)::bigint),
      'forSeconds', json_agg(r.for_seconds), 'rank', json_agg(r.rank), 'kind', json_agg(r.kind),
      'maxDevices', json_agg(r.max_devices),
      'pinned', json_object_agg(r.id, r.pinned_gpu_id) filter (where r.pinned_gpu_id is not null),
      'needs', json_object_agg(r.id, r.needs) filter (where r.needs is not null),
      'kept', json_object_agg(r.id, r.kept_gpu_ids) filter (where r.kept_gpu_ids is not null))
    from lease_requests r join users u on u.id = r.user_id where r.gpu_type = ${gpuType} and r.state = 'queued')`;
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
