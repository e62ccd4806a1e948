import { and, eq, ne } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import type { Transaction } from "#server/db/client.ts";
import { leaseRequests, leases, workspaces } from "#server/db/schema/index.ts";
import { lockGpuTypes } from "#server/services/lease/world.ts";
import { stopLocked } from "#server/services/workspace/stop.ts";

/**
 * Stops what a person runs, in one team or in all, and gives its GPUs back; files stay. Part of an operation that its
 * caller has authorised. Returns how many were stopped.
 */
export async function stopOfPerson(
  tx: Context & { db: Transaction },
  { userId, teamId }: { userId: string; teamId?: string },
): Promise<number> {
  const inTeam = <T>(equals: (teamId: string) => T) => (teamId === undefined ? undefined : equals(teamId));
  const running = await tx.db
    .select()
    .from(workspaces)
    .where(
      and(
        inTeam((id) => eq(workspaces.teamId, id)),
        eq(workspaces.ownerId, userId),
        eq(workspaces.desired, "running"),
      ),
    )
    .orderBy(workspaces.id)
    .for("no key update");
  // All types at once, in the order that everybody takes them: workspaces one by one would mix it.
  const held = await tx.db
    .selectDistinct({ gpuType: leases.gpuType })
    .from(leases)
    .where(
      and(
        inTeam((id) => eq(leases.teamId, id)),
        eq(leases.userId, userId),
        ne(leases.state, "ended"),
      ),
    );
  const waiting = await tx.db
    .selectDistinct({ gpuType: leaseRequests.gpuType })
    .from(leaseRequests)
    .where(
      and(
        inTeam((id) => eq(leaseRequests.teamId, id)),
        eq(leaseRequests.userId, userId),
        eq(leaseRequests.state, "queued"),
      ),
    );
  await lockGpuTypes(
    tx.db,
    [...held, ...waiting].map((row) => row.gpuType),
  );
  for (const row of running) await stopLocked(tx, row);
  return running.length;
}
