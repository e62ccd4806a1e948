import { sql } from "drizzle-orm";
import type { Database, Transaction } from "#server/db/client.ts";
import { is } from "./ledger.ts";

/** When the first GPU (of a type) joined the pool: nothing was observed before. Undefined: none ever did. */
export async function observedSince(db: Database | Transaction, gpuType?: string): Promise<Date | undefined> {
  const [row] = await db.execute<{ since: string | null }>(sql`
    select to_char(min(d.started_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as since
    from device_intervals d join gpus g on g.id = d.gpu_id where ${is(sql`g.gpu_type`, gpuType)}`);
  return row?.since ? new Date(row.since) : undefined;
}
