import { and, eq, inArray, ne } from "drizzle-orm";
import type { Database, Transaction } from "#server/db/client.ts";
import { leases, teamPolicies } from "#server/db/schema/index.ts";
import { idleEndOf } from "./holder.ts";
import { DEFAULT_IDLE_SECONDS } from "./policy.ts";
import type { LeaseRow } from "./view.ts";

/** When each lease reaches its idle limit (ISO 8601), by request id. All GPUs of a lease count. Absent: unknown. */
export async function readIdleEnds(
  db: Database | Transaction,
  requestIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (requestIds.length === 0) return new Map();
  const rows = await db
    .select({ lease: leases, idleSeconds: teamPolicies.idleSeconds })
    .from(leases)
    .leftJoin(teamPolicies, eq(teamPolicies.teamId, leases.teamId))
    .where(and(inArray(leases.requestId, [...new Set(requestIds)]), ne(leases.state, "ended")));
  const partsOf = new Map<string, { parts: LeaseRow[]; idleMs: number }>();
  for (const { lease, idleSeconds } of rows) {
    const known = partsOf.get(lease.requestId);
    if (known) known.parts.push(lease);
    else partsOf.set(lease.requestId, { parts: [lease], idleMs: (idleSeconds ?? DEFAULT_IDLE_SECONDS) * 1000 });
  }
  return new Map(
    [...partsOf].flatMap(([requestId, { parts, idleMs }]) => {
      const end = idleEndOf(parts, idleMs);
      return end === null ? [] : [[requestId, end.toISOString()] as const];
    }),
  );
}
