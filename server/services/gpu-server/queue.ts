import type { Context } from "#server/context.ts";
import { type PoolQueue, type PoolQueueInput, poolQueueInput } from "#server/contracts/gpu-server.ts";
import { pageOf } from "#server/page-of.ts";
import { parse } from "#server/parse.ts";
import { readPoolQueue } from "./pool-queue.ts";
import { poolSight } from "./pool-sight.ts";

/** The queues of all types or of one, page by page: to an admin everybody's requests, to a lead those of the led teams. */
export async function queue(ctx: Context, raw: PoolQueueInput = {}): Promise<PoolQueue> {
  const input = parse(poolQueueInput, raw);
  const { queue: all, queued } = await readPoolQueue(ctx, poolSight(ctx));
  const asked = all.filter(({ gpuType }) => input.gpuType === undefined || gpuType === input.gpuType);
  const limit = input.format === "csv" ? Number.POSITIVE_INFINITY : input.limit;
  const page = pageOf(
    asked.map((entry) => ({ id: entry.requestId, entry })),
    ({ entry }) => [entry.gpuType, entry.userName, entry.teamName, entry.workspaceName, entry.label ?? ""].join(" "),
    { ...input, limit },
  );
  return {
    queued: [...queued].map(([gpuType, count]) => ({ gpuType, count })),
    rows: page.rows.map(({ entry }) => entry),
    rowCount: page.total,
    next: page.next,
  };
}
