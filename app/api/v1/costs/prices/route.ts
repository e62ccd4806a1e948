import { nothing } from "#server/contracts/common.ts";
import { gpuPriceList } from "#server/contracts/cost.ts";
import { route } from "#server/http/route.ts";
import { prices } from "#server/services/cost/prices.ts";

export const GET = route(
  {
    method: "GET",
    path: "/costs/prices",
    summary: "What GPU types cost",
    action: "cost.set-price",
    input: nothing,
    output: gpuPriceList,
  },
  (ctx) => prices(ctx),
);
