import { and, eq, inArray, sql } from "drizzle-orm";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import type { LeaseUsage } from "#server/contracts/control.ts";
import type { Transaction } from "#server/db/client.ts";
import { leases, leaseWork, usageSamples } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { type Runs, reportLongKernels } from "./report-long-kernels.ts";

/** Takes what gpud measured: totals go to the lease, the difference since the last report into a sample. */
export async function recordUsage(ctx: Context, input: { serverId: string; usages: LeaseUsage[] }): Promise<void> {
  authorize(ctx.principal, "gpu-server.control", { serverId: input.serverId });
  const ids = input.usages.map((usage) => usage.leaseId);
  if (ids.length === 0) return;
  const runs = await inTransaction(ctx, async (tx) => {
    const now = tx.now();
    const rows = await tx.db
      .select()
      .from(leases)
      .where(
        and(inArray(leases.id, ids), eq(leases.serverId, input.serverId), inArray(leases.state, ["active", "ending"])),
      )
      .orderBy(leases.id)
      .for("update");
    const runs: Runs[] = [];
    for (const lease of rows) {
      const usage = input.usages.find((candidate) => candidate.leaseId === lease.id);
      if (usage === undefined) continue;
      runs.push({ lease, running: usage.running });
      const gpuTimeUs = Math.max(0, usage.gpuTimeUs - lease.gpuTimeUs);
      const deliveredUs = Math.max(0, usage.deliveredUs - lease.deliveredUs);
      const promisedUs = Math.max(0, usage.promisedUs - lease.promisedUs);
      const calls = Math.max(0, usage.calls - lease.calls);
      const sm = activitySince(lease, usage);
      const worked = gpuTimeUs > 0;
      const same = usage.memoryBytes === lease.usedMemoryBytes && usage.running === null && lease.running === null;
      // Whoever waits for the device all the time delivers nothing, and is owed it all the same.
      if (!worked && calls === 0 && promisedUs === 0 && sm.smKnownUs === 0 && same) continue;
      await tx.db
        .update(leases)
        .set({
          usedMemoryBytes: usage.memoryBytes,
          gpuTimeUs: Math.max(lease.gpuTimeUs, usage.gpuTimeUs),
          deliveredUs: Math.max(lease.deliveredUs, usage.deliveredUs),
          promisedUs: Math.max(lease.promisedUs, usage.promisedUs),
          smActiveUs: lease.smActiveUs + sm.smActiveUs,
          smKnownUs: lease.smKnownUs + sm.smKnownUs,
          smEstimatedUs: lease.smEstimatedUs + sm.smEstimatedUs,
          calls: Math.max(lease.calls, usage.calls),
          running: usage.running,
          ...(worked ? { usageAt: now } : {}),
        })
        .where(eq(leases.id, lease.id));
      const measured = { leaseId: lease.id, gpuTimeUs, ...sm, deliveredUs, promisedUs };
      await tx.db.insert(usageSamples).values({ ...measured, at: now, memoryBytes: usage.memoryBytes, calls });
      await addWork(tx.db, measured, now);
      await notify(tx.db, "pool", lease.gpuId);
    }
    return runs;
  });
  // Apart: what people are told must not undo what was measured.
  await reportLongKernels(ctx, runs);
}

type SmColumns = Pick<typeof leases.$inferSelect, "smActiveUs" | "smKnownUs" | "smEstimatedUs">;

/** How active multiprocessors were since the last report. */
function activitySince(lease: SmColumns, { smActivity: now }: LeaseUsage): SmColumns {
  if (now === null) return { smActiveUs: 0, smKnownUs: 0, smEstimatedUs: 0 };
  return {
    smActiveUs: Math.max(0, now.activeUs - lease.smActiveUs),
    smKnownUs: Math.max(0, now.knownUs - lease.smKnownUs),
    smEstimatedUs: Math.max(0, now.estimatedUs - lease.smEstimatedUs),
  };
}

type Measured = SmColumns & { leaseId: string; gpuTimeUs: number; deliveredUs: number; promisedUs: number };

/**
 * Adds a sample to its hour: with it in one transaction, so that the sums by the hour are those of the samples. Of what
 * was delivered only what was promised counts: too much in one second makes up for too little in no other.
 */
async function addWork(db: Transaction, measured: Measured, now: Date): Promise<void> {
  const hour = new Date(now);
  hour.setUTCMinutes(0, 0, 0);
  const deliveredUs = Math.min(measured.deliveredUs, measured.promisedUs);
  await db
    .insert(leaseWork)
    .values({ ...measured, deliveredUs, hour })
    .onConflictDoUpdate({
      target: [leaseWork.leaseId, leaseWork.hour],
      set: {
        gpuTimeUs: sql`${leaseWork.gpuTimeUs} + excluded.gpu_time_us`,
        smActiveUs: sql`${leaseWork.smActiveUs} + excluded.sm_active_us`,
        smKnownUs: sql`${leaseWork.smKnownUs} + excluded.sm_known_us`,
        smEstimatedUs: sql`${leaseWork.smEstimatedUs} + excluded.sm_estimated_us`,
        deliveredUs: sql`${leaseWork.deliveredUs} + excluded.delivered_us`,
        promisedUs: sql`${leaseWork.promisedUs} + excluded.promised_us`,
      },
    });
}
