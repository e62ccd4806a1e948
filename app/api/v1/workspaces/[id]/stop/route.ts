import { workspaceInput, workspaceView } from "#server/contracts/workspace.ts";
import { route } from "#server/http/route.ts";
import { stop } from "#server/services/workspace/stop.ts";

export const POST = route(
  {
    method: "POST",
    path: "/workspaces/{id}/stop",
    summary: "Stop a workspace: notebooks end, GPUs go back, files stay",
    action: "workspace.stop",
    input: workspaceInput,
    output: workspaceView,
  },
  (ctx, input) => stop(ctx, input),
);
