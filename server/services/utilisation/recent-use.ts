import { sql } from "drizzle-orm";
import type { Database } from "#server/db/client.ts";
import { knownGpuTypes } from "#server/services/lease/world.ts";

const MINUTE_MS = 60_000;

export type RecentUse = {
  gpuType: string;
  /** GPUs at work, of those on lease, on average of the last minute: where it is known how effective, and where not. */
  usedKnown: number;
  usedUnknown: number;
  /** Of the first: what multiprocessors worked, averaged over all of them; counted, and estimated. */
  counted: number;
  estimated: number;
};

/** What leases of each GPU type did in the last minute, from gpud's samples. The caller has authorised who sees it. */
export async function recentUse(db: Database, now: Date): Promise<RecentUse[]> {
  const since = new Date(now.getTime() - MINUTE_MS).toISOString();
  const micro = sql.raw(String(MINUTE_MS * 1000));
  const rows = await db.execute<RecentUse>(sql`
    select gpu_type as "gpuType", sum(milli * worked * known) / 1000 as "usedKnown",
      sum(milli * worked * (1 - known)) / 1000 as "usedUnknown",
      sum(milli * least(active, worked * known) * (1 - estimated)) / 1000 as counted,
      sum(milli * least(active, worked * known) * estimated) / 1000 as estimated
    from (
      select l.gpu_type, l.milli, least(1, sum(u.gpu_time_us)::float8 / ${micro}) as worked,
        least(1, sum(u.sm_active_us)::float8 / ${micro}) as active,
        least(1, sum(u.sm_known_us)::float8 / greatest(1, sum(u.gpu_time_us))) as known,
        least(1, sum(u.sm_estimated_us)::float8 / greatest(1, sum(u.sm_active_us))) as estimated
      from usage_samples u join leases l on l.id = u.lease_id
      where u.at > ${since}::timestamptz and u.at <= ${now.toISOString()}::timestamptz group by l.id
    ) x group by 1`);
  const found = new Map(rows.map((row) => [row.gpuType, row]));
  // Types on which nothing worked are idle, which is known.
  const none = { usedKnown: 0, usedUnknown: 0, counted: 0, estimated: 0 };
  return (await knownGpuTypes(db)).map((gpuType) => found.get(gpuType) ?? { gpuType, ...none });
}
