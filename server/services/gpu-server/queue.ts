import type { Context } from "#server/context.ts";
import { type PoolQueue, type PoolQueueInput, poolQueueInput, type QueueEntry } from "#server/contracts/gpu-server.ts";
import { pageOf } from "#server/page-of.ts";
import { parse } from "#server/parse.ts";
import { readPoolQueue } from "./pool-queue.ts";
import { poolSight } from "./pool-sight.ts";

/** The queues of all types or of one, page by page: to an admin everybody's requests, to a lead those of the led teams. */
export async function queue(ctx: Context, raw: PoolQueueInput = {}): Promise<PoolQueue> {
  const input = parse(poolQueueInput, raw);
  const { queue: all, queued } = await readPoolQueue(ctx, poolSight(ctx));
  const asked = all
    .filter(({ gpuType }) => input.gpuType === undefined || gpuType === input.gpuType)
    .map((entry) => ({ id: placeOf(entry), entry }));
  const limit = input.format === "csv" ? Number.POSITIVE_INFINITY : input.limit;
  const page = (rows: typeof asked) =>
    pageOf(
      rows,
      ({ entry }) => [entry.gpuType, entry.userName, entry.teamName, entry.workspaceName, entry.label ?? ""].join(" "),
      { search: input.search, limit },
    );
  const { after = "" } = input;
  // The request at the end of the page before may wait no more: what comes is what stands behind its place.
  const shown = page(asked.filter(({ id }) => id > after));
  return {
    queued: [...queued].map(([gpuType, count]) => ({ gpuType, count })),
    rows: shown.rows.map(({ entry }) => entry),
    rowCount: page(asked).total,
    next: shown.next,
  };
}

/** Where a request stands, as a text that is greater the later it comes: type by type, the oldest first. */
function placeOf({ gpuType, waitingSince, requestId }: QueueEntry): string {
  return [gpuType, waitingSince, requestId].join(" ");
}
