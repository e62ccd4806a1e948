import { gpuPriceList, removePriceInput, setPriceInput } from "#server/contracts/cost.ts";
import { route } from "#server/http/route.ts";
import { removePrice } from "#server/services/cost/remove-price.ts";
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

export const DELETE = route(
  {
    method: "DELETE",
    path: "/costs/prices/{type}",
    summary: "Remove the price of a GPU type",
    action: "cost.set-price",
    input: removePriceInput,
    output: gpuPriceList,
  },
  (ctx, input) => removePrice(ctx, input),
);
