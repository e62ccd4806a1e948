import { nothing } from "#server/contracts/common.ts";
import { setupStepList } from "#server/contracts/setup.ts";
import { route } from "#server/http/route.ts";
import { list } from "#server/services/setup-step/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/setup-steps",
    summary: "The steps of start-up",
    action: "setup-step.list",
    input: nothing,
    output: setupStepList,
  },
  (ctx) => list(ctx),
);
