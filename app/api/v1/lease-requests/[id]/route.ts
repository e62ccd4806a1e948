import { leaveQueueAnswer, leaveQueueInput } from "#server/contracts/lease-board.ts";
import { route } from "#server/http/route.ts";
import { leaveQueue } from "#server/services/lease/leave-queue.ts";

export const DELETE = route(
  {
    method: "DELETE",
    path: "/lease-requests/{id}",
    summary: "Take a waiting request out of the queue; the notebook is told",
    action: "lease.leave-queue",
    input: leaveQueueInput,
    output: leaveQueueAnswer,
  },
  (ctx, input) => leaveQueue(ctx, input),
);
