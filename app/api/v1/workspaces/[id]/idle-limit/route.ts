import { setIdleLimitInput, workspaceView } from "#server/contracts/workspace.ts";
import { route } from "#server/http/route.ts";
import { setIdleLimit } from "#server/services/workspace/set-idle-limit.ts";

export const PUT = route(
  {
    method: "PUT",
    path: "/workspaces/{id}/idle-limit",
    summary: "Set after how long without activity it is stopped",
    action: "workspace.change",
    input: setIdleLimitInput,
    output: workspaceView,
  },
  (ctx, input) => setIdleLimit(ctx, input),
);
