import { setImmediate } from "node:timers/promises";
import type { Context } from "#server/context.ts";
import { type PoolQueue, type PoolQueueInput, poolQueueInput, type QueueEntry } from "#server/contracts/gpu-server.ts";
import { parse } from "#server/parse.ts";
import { ESTIMATED, estimates } from "#server/scheduler/estimate.ts";
import { sentence } from "#server/scheduler/reasons.ts";
import { seenBy } from "#server/scheduler/seen-by.ts";
import { readerOf } from "#server/services/lease/reader.ts";
import { shownQueue } from "#server/services/lease/shown.ts";
import { teamsSeen } from "./pool-sight.ts";
import { type QueuedRow, queuedByType, readQueued } from "./queued.ts";

/** So many rows are told of before others have their turn. */
const AT_ONCE = 200;

/** The queues of all types or of one, page by page: to an admin everybody's requests, to a lead those of the led teams. */
export async function queue(ctx: Context, raw: PoolQueueInput = {}): Promise<PoolQueue> {
  const { limit, format, ...asked } = parse(poolQueueInput, raw);
  const [queued, page] = await Promise.all([
    queuedByType(ctx.db),
    readQueued(ctx.db, { ...asked, teamIds: teamsSeen(ctx), limit: format === "csv" ? undefined : limit }),
  ]);
  return {
    queued: [...queued].map(([gpuType, count]) => ({ gpuType, count })),
    rows: await judgedRows(ctx, page.rows),
    rowCount: page.rowCount,
    next: page.next,
  };
}

/** All who wait as far as whoever looks may know them, in the order of the queues. */
export async function wholeQueue(ctx: Context): Promise<QueueEntry[]> {
  return await judgedRows(ctx, (await readQueued(ctx.db, { teamIds: teamsSeen(ctx) })).rows);
}

/** Rows with their places, reasons and estimates, those apart that are about to be granted. No other type is looked at. */
async function judgedRows(ctx: Context, rows: readonly QueuedRow[]): Promise<QueueEntry[]> {
  const entries: QueueEntry[] = [];
  for (const [gpuType, ofType] of Map.groupBy(rows, (row) => row.gpuType)) {
    const ids = ofType.map((row) => row.requestId);
    const { world, verdicts } = await shownQueue(ctx.db, gpuType, ids, ctx.now());
    const verdictOf = new Map(verdicts.map((verdict) => [verdict.requestId, verdict]));
    const waitingOf = new Map(world.queue.map((waiting) => [waiting.requestId, waiting]));
    const seen = seenBy(readerOf(ctx), world);
    const early = ids.filter((id) => {
      const verdict = verdictOf.get(id);
      return verdict?.state === "queued" && verdict.position <= ESTIMATED;
    });
    const guesses = estimates(early, world, verdicts);
    for (const [at, row] of ofType.entries()) {
      if (at % AT_ONCE === AT_ONCE - 1) await setImmediate();
      const verdict = verdictOf.get(row.requestId);
      const waiting = waitingOf.get(row.requestId);
      if (verdict?.state !== "queued" || waiting === undefined) continue;
      entries.push({
        ...row,
        position: verdict.position,
        of: verdict.of,
        reason: sentence(waiting, verdict.obstacle, seen),
        rule: verdict.obstacle.rule,
        likelySeconds: guesses.get(row.requestId)?.likely ?? null,
        soonestSeconds: guesses.get(row.requestId)?.soonest ?? null,
      });
    }
  }
  return entries;
}
