import { workspaceInput } from "#server/contracts/workspace.ts";
import { startedKernel, startKernelInput, workspaceKernels } from "#server/contracts/workspace-kernel.ts";
import { route } from "#server/http/route.ts";
import { list } from "#server/services/workspace-kernel/list.ts";
import { start } from "#server/services/workspace-kernel/start.ts";

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

export const POST = route(
  {
    method: "POST",
    path: "/workspaces/{id}/kernels",
    summary: "Start a kernel for a notebook, or find the one that it has",
    action: "workspace.run-code",
    input: startKernelInput,
    output: startedKernel,
    status: 201,
  },
  (ctx, input) => start(ctx, input),
);
