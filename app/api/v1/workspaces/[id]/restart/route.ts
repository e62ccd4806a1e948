import { workspaceInput, workspaceView } from "#server/contracts/workspace.ts";
import { route } from "#server/http/route.ts";
import { restart } from "#server/services/workspace/restart.ts";

export const POST = route(
  {
    method: "POST",
    path: "/workspaces/{id}/restart",
    summary: "Restart a workspace: its notebooks end, its files stay",
    action: "workspace.restart",
    input: workspaceInput,
    output: workspaceView,
  },
  (ctx, input) => restart(ctx, input),
);
