import { closeMonthInput, costReport } from "#server/contracts/cost.ts";
import { route } from "#server/http/route.ts";
import { closeMonth } from "#server/services/cost/close-month.ts";

export const POST = route(
  {
    method: "POST",
    path: "/costs/months/{month}/close",
    summary: "Close a month: its costs change no more",
    action: "cost.close-month",
    input: closeMonthInput,
    output: costReport,
  },
  (ctx, input) => closeMonth(ctx, input),
);
