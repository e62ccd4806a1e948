import { workspaceView } from "#server/contracts/workspace.ts";
import { setWorkspaceSizeInput } from "#server/contracts/workspace-size.ts";
import { route } from "#server/http/route.ts";
import { setSize } from "#server/services/workspace/set-size.ts";

export const PUT = route(
  {
    method: "PUT",
    path: "/workspaces/{id}/size",
    summary: "Choose another size, by the rules of a launch; its next start has it",
    action: "workspace.change",
    input: setWorkspaceSizeInput,
    output: workspaceView,
  },
  (ctx, input) => setSize(ctx, input),
);
