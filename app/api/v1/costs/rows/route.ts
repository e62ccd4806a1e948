import { costRows, costRowsInput } from "#server/contracts/cost.ts";
import { route } from "#server/http/route.ts";
import { rows } from "#server/services/cost/rows.ts";

export const GET = route(
  {
    method: "GET",
    path: "/costs/rows",
    summary: "A month's costs by team, person or workspace",
    action: "cost.read",
    input: costRowsInput,
    output: costRows,
  },
  (ctx, input) => rows(ctx, input),
);
