import { type PoolQueue, poolQueue, poolQueueInput } from "#server/contracts/gpu-server.ts";
import { csvResponse } from "#server/http/csv.ts";
import { route } from "#server/http/route.ts";
import { queue } from "#server/services/gpu-server/queue.ts";

export const GET = route(
  {
    method: "GET",
    path: "/pool/queue",
    summary: "Who waits for GPUs, with the place and the reason of each",
    action: "pool.read",
    input: poolQueueInput,
    output: poolQueue,
    csv: true,
  },
  async (ctx, input) => {
    const answer = await queue(ctx, input);
    return input.format === "csv" ? asCsv(answer) : answer;
  },
);

/** A line for each request, in the order of the queues. */
function asCsv({ rows }: PoolQueue): Response {
  return csvResponse(
    "queue.csv",
    ["GPU type", "place", "of", "GPUs", "person", "team", "workspace", "label", "since", "likely in s", "reason"],
    rows.map((row) => [
      ...[row.gpuType, row.position, row.of, row.milli / 1000, row.userName, row.teamName, row.workspaceName],
      ...[row.label, row.waitingSince, row.likelySeconds, row.reason],
    ]),
  );
}
