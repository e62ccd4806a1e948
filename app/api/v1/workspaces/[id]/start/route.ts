import { workspaceInput, workspaceView } from "#server/contracts/workspace.ts";
import { route } from "#server/http/route.ts";
import { start } from "#server/services/workspace/start.ts";

export const POST = route(
  {
    method: "POST",
    path: "/workspaces/{id}/start",
    summary: "Start a stopped workspace",
    action: "workspace.start",
    input: workspaceInput,
    output: workspaceView,
  },
  (ctx, input) => start(ctx, input),
);
