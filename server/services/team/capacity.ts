import { and, asc, eq, ne, sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { gpuServers, gpus } from "#server/db/schema/index.ts";
import { WHOLE } from "#server/scheduler/amount.ts";

/** What guarantees are made from: the devices of each type on servers that were not removed, in thousandths. */
export async function capacityByType({ db }: Pick<Context, "db">, gpuType?: string): Promise<Map<string, number>> {
  const rows = await db
    .select({ gpuType: gpus.gpuType, milli: sql<number>`count(*)::int * ${sql.raw(String(WHOLE))}` })
    .from(gpus)
    .innerJoin(gpuServers, eq(gpuServers.id, gpus.serverId))
    .where(and(gpuType === undefined ? undefined : eq(gpus.gpuType, gpuType), ne(gpuServers.state, "removed")))
    .groupBy(gpus.gpuType)
    .orderBy(asc(gpus.gpuType));
  return new Map(rows.map((row) => [row.gpuType, row.milli]));
}
