import { nothing } from "#server/contracts/common.ts";
import { addSizeInput, sizeList } from "#server/contracts/workspace-size.ts";
import { route } from "#server/http/route.ts";
import { add } from "#server/services/workspace-size/add.ts";
import { list } from "#server/services/workspace-size/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/workspace-sizes",
    summary: "Sizes that one may choose from, and who may choose others",
    action: "workspace-size.list",
    input: nothing,
    output: sizeList,
  },
  (ctx) => list(ctx),
);

export const POST = route(
  {
    method: "POST",
    path: "/workspace-sizes",
    summary: "Offer another size of workspaces",
    action: "workspace-size.edit",
    input: addSizeInput,
    output: sizeList,
    status: 201,
  },
  (ctx, input) => add(ctx, input),
);
