import { workspaceInput } from "#server/contracts/workspace.ts";
import { workspaceKernels } from "#server/contracts/workspace-kernel.ts";
import { route } from "#server/http/route.ts";
import { list } from "#server/services/workspace-kernel/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/workspaces/{id}/kernels",
    summary: "Kernels that run in a workspace",
    action: "workspace.read",
    input: workspaceInput,
    output: workspaceKernels,
  },
  (ctx, input) => list(ctx, input),
);
