import { nothing } from "#server/contracts/common.ts";
import { workspaceInput, workspaceView } from "#server/contracts/workspace.ts";
import { route } from "#server/http/route.ts";
import { get } from "#server/services/workspace/get.ts";
import { remove } from "#server/services/workspace/remove.ts";

export const GET = route(
  {
    method: "GET",
    path: "/workspaces/{id}",
    summary: "One workspace",
    action: "workspace.read",
    input: workspaceInput,
    output: workspaceView,
  },
  (ctx, input) => get(ctx, input),
);

export const DELETE = route(
  {
    method: "DELETE",
    path: "/workspaces/{id}",
    summary: "Remove a workspace; its files are kept for some days, then deleted",
    action: "workspace.remove",
    input: workspaceInput,
    output: nothing,
  },
  (ctx, input) => remove(ctx, input),
);
