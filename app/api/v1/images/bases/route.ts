import { nothing } from "#server/contracts/common.ts";
import { imageBaseList } from "#server/contracts/image.ts";
import { route } from "#server/http/route.ts";
import { listBases } from "#server/services/image/list-bases.ts";

export const GET = route(
  {
    method: "GET",
    path: "/images/bases",
    summary: "What a proposed environment can begin with",
    action: "image.list",
    input: nothing,
    output: imageBaseList,
  },
  (ctx) => listBases(ctx),
);
