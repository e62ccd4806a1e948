import { updateWorkspaceInput, workspaceView } from "#server/contracts/workspace.ts";
import { route } from "#server/http/route.ts";
import { update } from "#server/services/workspace/update.ts";

export const POST = route(
  {
    method: "POST",
    path: "/workspaces/{id}/update",
    summary: "Take the version of the environment that is offered; what runs is restarted with it",
    action: "workspace.change",
    input: updateWorkspaceInput,
    output: workspaceView,
  },
  (ctx, input) => update(ctx, input),
);
