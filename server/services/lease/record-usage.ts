import { and, eq, inArray } from "drizzle-orm";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import type { LeaseUsage } from "#server/contracts/control.ts";
import { leases, usageSamples } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";

/** Takes what gpud measured: totals go to the lease, the difference since the last report into a sample. */
export async function recordUsage(ctx: Context, input: { serverId: string; usages: LeaseUsage[] }): Promise<void> {
  authorize(ctx.principal, "gpu-server.control", { serverId: input.serverId });
  const ids = input.usages.map((usage) => usage.leaseId);
  if (ids.length === 0) return;
  await inTransaction(ctx, async (tx) => {
    const now = tx.now();
    const rows = await tx.db
      .select()
      .from(leases)
      .where(
        and(inArray(leases.id, ids), eq(leases.serverId, input.serverId), inArray(leases.state, ["active", "ending"])),
      )
      .orderBy(leases.id)
      .for("update");
    for (const lease of rows) {
      const usage = input.usages.find((candidate) => candidate.leaseId === lease.id);
      if (usage === undefined) continue;
      const gpuTimeUs = Math.max(0, usage.gpuTimeUs - lease.gpuTimeUs);
      const deliveredUs = Math.max(0, usage.deliveredUs - lease.deliveredUs);
      const promisedUs = Math.max(0, usage.promisedUs - lease.promisedUs);
      const calls = Math.max(0, usage.calls - lease.calls);
      const worked = gpuTimeUs > 0;
      if (!worked && calls === 0 && usage.memoryBytes === lease.usedMemoryBytes) continue;
      await tx.db
        .update(leases)
        .set({
          usedMemoryBytes: usage.memoryBytes,
          gpuTimeUs: Math.max(lease.gpuTimeUs, usage.gpuTimeUs),
          deliveredUs: Math.max(lease.deliveredUs, usage.deliveredUs),
          promisedUs: Math.max(lease.promisedUs, usage.promisedUs),
          calls: Math.max(lease.calls, usage.calls),
          ...(worked ? { usageAt: now } : {}),
        })
        .where(eq(leases.id, lease.id));
      await tx.db.insert(usageSamples).values({
        ...{ leaseId: lease.id, at: now, memoryBytes: usage.memoryBytes, calls },
        ...{ gpuTimeUs, deliveredUs, promisedUs },
      });
      await notify(tx.db, "pool", lease.gpuId);
    }
  });
}
