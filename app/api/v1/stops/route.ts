import { nothing } from "#server/contracts/common.ts";
import { setStopAnswer, setStopInput, stopList } from "#server/contracts/sharing.ts";
import { route } from "#server/http/route.ts";
import { list } from "#server/services/stop/list.ts";
import { setStop } from "#server/services/stop/set.ts";

export const GET = route(
  {
    method: "GET",
    path: "/stops",
    summary: "Stops of new leases that are on",
    action: "stop.list",
    input: nothing,
    output: stopList,
  },
  (ctx) => list(ctx),
);

export const POST = route(
  {
    method: "POST",
    path: "/stops",
    summary: "Stop new leases for all, a team or a person",
    action: "stop.set",
    input: setStopInput,
    output: setStopAnswer,
    status: 201,
  },
  (ctx, input) => setStop(ctx, input),
);
