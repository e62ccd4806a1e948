import { and, eq, gt, isNull, lt, or } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { deviceIntervals, leaseIntervals, leases } from "#server/db/schema/index.ts";
import { type DeviceLedger, deviceLedger } from "#server/scheduler/ledger.ts";

/**
 * What became of every moment of every device between two times: used, held idle, idle, draining, lost. Thousandths of
 * a GPU times milliseconds; the parts of a device sum to the time that it was in the pool. The caller has authorised.
 */
export async function ledgers(ctx: Context, from: Date, to: Date): Promise<Map<string, DeviceLedger>> {
  const [states, leased] = await Promise.all([
    ctx.db
      .select()
      .from(deviceIntervals)
      .where(
        and(lt(deviceIntervals.startedAt, to), or(isNull(deviceIntervals.endedAt), gt(deviceIntervals.endedAt, from))),
      ),
    ctx.db
      .select({ interval: leaseIntervals, gpuTimeUs: leases.gpuTimeUs })
      .from(leaseIntervals)
      .innerJoin(leases, eq(leases.id, leaseIntervals.leaseId))
      .where(
        and(lt(leaseIntervals.startedAt, to), or(isNull(leaseIntervals.endedAt), gt(leaseIntervals.endedAt, from))),
      ),
  ]);
  const stretch = (row: { startedAt: Date; endedAt: Date | null }) => ({
    from: row.startedAt.getTime(),
    ...(row.endedAt === null ? {} : { to: row.endedAt.getTime() }),
  });
  const gpuIds = new Set(states.map((row) => row.gpuId));
  return new Map(
    [...gpuIds].map((gpuId) => [
      gpuId,
      deviceLedger(
        states.filter((row) => row.gpuId === gpuId).map((row) => ({ ...stretch(row), state: row.state })),
        leased
          .filter(({ interval }) => interval.gpuId === gpuId)
          .map(({ interval, gpuTimeUs }) => ({
            ...stretch(interval),
            ...{ milli: interval.milli, teamId: interval.teamId, userId: interval.userId },
            usedMs: Math.floor(gpuTimeUs / 1000),
          })),
        from.getTime(),
        to.getTime(),
      ),
    ]),
  );
}
