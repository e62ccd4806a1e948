import { liftStopInput, stopList } from "#server/contracts/sharing.ts";
import { route } from "#server/http/route.ts";
import { lift } from "#server/services/stop/lift.ts";

export const DELETE = route(
  {
    method: "DELETE",
    path: "/stops/{id}",
    summary: "Lift a stop of new leases",
    action: "stop.set",
    input: liftStopInput,
    output: stopList,
  },
  (ctx, input) => lift(ctx, input),
);
