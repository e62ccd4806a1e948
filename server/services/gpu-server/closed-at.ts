import { sql } from "drizzle-orm";
import { gpuServers } from "#server/db/schema/index.ts";

/** Of a row of `gpu_servers`: since when it takes no new leases, because of its node or because an admin drained it; null while it does. */
export const closedAt =
  sql<Date | null>`case when ${gpuServers.drainedAt} is not null then coalesce(${gpuServers.cordonedAt}, ${gpuServers.drainedAt}) end`.mapWith(
    gpuServers.cordonedAt,
  );
