import { extendWorkspaceInput, workspaceView } from "#server/contracts/workspace.ts";
import { route } from "#server/http/route.ts";
import { extend } from "#server/services/workspace/extend.ts";

export const POST = route(
  {
    method: "POST",
    path: "/workspaces/{id}/extend",
    summary: "Let a workspace be idle for longer",
    action: "workspace.work",
    input: extendWorkspaceInput,
    output: workspaceView,
  },
  (ctx, input) => extend(ctx, input),
);
