import { nothing } from "#server/contracts/common.ts";
import { workspaceKernelInput } from "#server/contracts/workspace-kernel.ts";
import { route } from "#server/http/route.ts";
import { shutDown } from "#server/services/workspace-kernel/shut-down.ts";

export const DELETE = route(
  {
    method: "DELETE",
    path: "/workspaces/{id}/kernels/{kernelId}",
    summary: "Shut down a kernel",
    action: "workspace.work",
    input: workspaceKernelInput,
    output: nothing,
  },
  (ctx, input) => shutDown(ctx, input),
);
