import { kernelOutput, runCodeInput } from "#server/contracts/workspace-kernel.ts";
import { route } from "#server/http/route.ts";
import { run } from "#server/services/workspace-kernel/run.ts";

export const POST = route(
  {
    method: "POST",
    path: "/workspaces/{id}/kernels/{kernelId}/run",
    summary: "Run code in a kernel, and follow what comes of it",
    action: "workspace.run-code",
    input: runCodeInput,
    output: kernelOutput,
    stream: "always",
  },
  (ctx, input) => run(ctx, input, ctx.signal),
);
