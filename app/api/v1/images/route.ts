import { nothing } from "#server/contracts/common.ts";
import { imageList } from "#server/contracts/image.ts";
import { route } from "#server/http/route.ts";
import { list } from "#server/services/image/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/images",
    summary: "The catalogue of environments",
    action: "image.list",
    input: nothing,
    output: imageList,
  },
  (ctx) => list(ctx),
);
