import { sql } from "drizzle-orm";
import { deviceIntervals, gpuServers, gpus } from "#server/db/schema/index.ts";

/** Of a row of `gpu_servers`: since when it takes no new leases, because of its node or because an admin drained it; null while it does. */
export const closedAt = sql<Date | null>`coalesce(${gpuServers.cordonedAt}, (
  select min(${deviceIntervals.startedAt}) from ${deviceIntervals}
  join ${gpus} on ${gpus.id} = ${deviceIntervals.gpuId}
  where ${gpus.serverId} = ${gpuServers.id} and ${deviceIntervals.state} = 'draining' and ${deviceIntervals.endedAt} is null
))`.mapWith(gpuServers.cordonedAt);
