import { handoverOutput, workspaceInput } from "#server/contracts/workspace.ts";
import { route } from "#server/http/route.ts";
import { handover } from "#server/services/workspace/handover.ts";

export const POST = route(
  {
    method: "POST",
    path: "/workspaces/{id}/open",
    summary: "A one-time way into the running workspace, for this browser session",
    action: "workspace.open",
    input: workspaceInput,
    output: handoverOutput,
  },
  (ctx, input) => handover(ctx, input),
);
