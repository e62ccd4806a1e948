import { nothing } from "#server/contracts/common.ts";
import { workspaceKernelInput } from "#server/contracts/workspace-kernel.ts";
import { route } from "#server/http/route.ts";
import { interrupt } from "#server/services/workspace-kernel/interrupt.ts";

export const POST = route(
  {
    method: "POST",
    path: "/workspaces/{id}/kernels/{kernelId}/interrupt",
    summary: "Interrupt a kernel",
    action: "workspace.work",
    input: workspaceKernelInput,
    output: nothing,
  },
  (ctx, input) => interrupt(ctx, input),
);
