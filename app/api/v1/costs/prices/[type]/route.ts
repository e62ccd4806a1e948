import { gpuPriceList, setPriceInput } from "#server/contracts/cost.ts";
import { route } from "#server/http/route.ts";
import { setPrice } from "#server/services/cost/set-price.ts";

export const PUT = route(
  {
    method: "PUT",
    path: "/costs/prices/{type}",
    summary: "Set what a GPU type costs",
    action: "cost.set-price",
    input: setPriceInput,
    output: gpuPriceList,
  },
  (ctx, input) => setPrice(ctx, input),
);
