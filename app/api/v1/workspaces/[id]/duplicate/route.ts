import { duplicateWorkspaceInput, workspaceView } from "#server/contracts/workspace.ts";
import { route } from "#server/http/route.ts";
import { duplicate } from "#server/services/workspace/duplicate.ts";

export const POST = route(
  {
    method: "POST",
    path: "/workspaces/{id}/duplicate",
    summary: "Launch another workspace like this one",
    action: "workspace.duplicate",
    input: duplicateWorkspaceInput,
    output: workspaceView,
    status: 201,
  },
  (ctx, input) => duplicate(ctx, input),
);
