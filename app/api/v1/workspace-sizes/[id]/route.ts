import { editSizeInput, removeSizeInput, sizeList } from "#server/contracts/workspace-size.ts";
import { route } from "#server/http/route.ts";
import { edit } from "#server/services/workspace-size/edit.ts";
import { remove } from "#server/services/workspace-size/remove.ts";

export const PUT = route(
  {
    method: "PUT",
    path: "/workspace-sizes/{id}",
    summary: "Change a size; workspaces that have it get it at their next start",
    action: "workspace-size.edit",
    input: editSizeInput,
    output: sizeList,
  },
  (ctx, input) => edit(ctx, input),
);

export const DELETE = route(
  {
    method: "DELETE",
    path: "/workspace-sizes/{id}",
    summary: "Offer a size no longer; workspaces that have it keep its cores and memory",
    action: "workspace-size.edit",
    input: removeSizeInput,
    output: sizeList,
  },
  (ctx, input) => remove(ctx, input),
);
