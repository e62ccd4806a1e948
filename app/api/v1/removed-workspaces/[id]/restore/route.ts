import { restoreWorkspaceInput, workspaceView } from "#server/contracts/workspace.ts";
import { route } from "#server/http/route.ts";
import { restore } from "#server/services/workspace/restore.ts";

export const POST = route(
  {
    method: "POST",
    path: "/removed-workspaces/{id}/restore",
    summary: "Restore a removed workspace, stopped, with its files",
    action: "workspace.restore",
    input: restoreWorkspaceInput,
    output: workspaceView,
  },
  (ctx, input) => restore(ctx, input),
);
