import { renameWorkspaceInput, workspaceView } from "#server/contracts/workspace.ts";
import { route } from "#server/http/route.ts";
import { rename } from "#server/services/workspace/rename.ts";

export const PUT = route(
  {
    method: "PUT",
    path: "/workspaces/{id}/name",
    summary: "Rename a workspace; its address, files and leases stay",
    action: "workspace.change",
    input: renameWorkspaceInput,
    output: workspaceView,
  },
  (ctx, input) => rename(ctx, input),
);
