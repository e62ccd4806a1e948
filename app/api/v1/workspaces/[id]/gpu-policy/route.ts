import { setGpuPolicyInput, workspaceView } from "#server/contracts/workspace.ts";
import { route } from "#server/http/route.ts";
import { setGpuPolicy } from "#server/services/workspace/set-gpu-policy.ts";

export const PUT = route(
  {
    method: "PUT",
    path: "/workspaces/{id}/gpu-policy",
    summary: "Set how it comes to a GPU, and the amount that it asks for by default",
    action: "workspace.change",
    input: setGpuPolicyInput,
    output: workspaceView,
  },
  (ctx, input) => setGpuPolicy(ctx, input),
);
