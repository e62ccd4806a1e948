/** What leases did in the last minute, from gpud's samples. */
import { and, gte, sql, sum } from "drizzle-orm";
import type { RunningKernel } from "#server/contracts/control.ts";
import type { Database, Transaction } from "#server/db/client.ts";
import { usageSamples } from "#server/db/schema/index.ts";
import { WHOLE } from "#server/scheduler/amount.ts";
import type { LeaseRow } from "./view.ts";

const MINUTE = 60_000;

/** Lease id → GPU time in the last minute, microseconds. */
export async function recentGpuTime(
  db: Database | Transaction,
  leaseIds: string[],
  now: Date,
): Promise<Map<string, number>> {
  if (leaseIds.length === 0) return new Map();
  const rows = await db
    .select({ leaseId: usageSamples.leaseId, gpuTimeUs: sum(usageSamples.gpuTimeUs).mapWith(Number) })
    .from(usageSamples)
    .where(
      and(
        sql`${usageSamples.leaseId} = any(${sql.param(leaseIds)}::text[])`,
        gte(usageSamples.at, new Date(now.getTime() - MINUTE)),
      ),
    )
    .groupBy(usageSamples.leaseId);
  return new Map(rows.map((row) => [row.leaseId, row.gpuTimeUs]));
}

/** The kernel that a lease runs now; what it ran when it was last heard is not told of one that nobody hears. */
export function runningOf(lease: Pick<LeaseRow, "state" | "running">): RunningKernel | null {
  return lease.state === "active" ? lease.running : null;
}

/** Per cent of a whole device that its leases computed in the last minute, 0..100. */
export function devicePercent(held: readonly { milli: number; computePercent: number }[]): number {
  const percent = held.reduce((sum, lease) => sum + (lease.computePercent * lease.milli) / WHOLE, 0);
  return Math.min(100, Math.round(percent * 10) / 10);
}

/** Per cent of an amount's own part of the last minute (of its whole life, when it is younger), 0..100. */
export function computePercent(gpuTimeUs: number, milli: number, grantedAt: Date, now: Date): number {
  const window = Math.min(MINUTE, Math.max(1000, now.getTime() - grantedAt.getTime()));
  const percent = (gpuTimeUs / 1000 / window) * (WHOLE / Math.max(1, milli)) * 100;
  return Math.round(Math.min(100, Math.max(0, percent)) * 10) / 10;
}
