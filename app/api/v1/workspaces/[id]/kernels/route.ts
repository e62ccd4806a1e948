import {
  followKernelsInput,
  startedKernel,
  startKernelInput,
  workspaceKernels,
} from "#server/contracts/workspace-kernel.ts";
import { followKernels } from "#server/http/follow-kernels.ts";
import { route } from "#server/http/route.ts";
import { list } from "#server/services/workspace-kernel/list.ts";
import { start } from "#server/services/workspace-kernel/start.ts";

export const GET = route(
  {
    method: "GET",
    path: "/workspaces/{id}/kernels",
    summary: "Kernels that run in a workspace; with ?follow a stream",
    action: "workspace.read",
    input: followKernelsInput,
    output: workspaceKernels,
    stream: "follow",
  },
  async (ctx, { follow, id }) =>
    follow === undefined ? await list(ctx, { id }) : await followKernels(ctx, { id }, ctx.signal),
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
