import { workspaceSamples, workspaceSamplesInput } from "#server/contracts/workspace.ts";
import { route } from "#server/http/route.ts";
import { samples } from "#server/services/workspace/samples.ts";

export const GET = route(
  {
    method: "GET",
    path: "/workspaces/{id}/samples",
    summary: "Processor time, memory and GPUs of a workspace over time",
    action: "workspace.read",
    input: workspaceSamplesInput,
    output: workspaceSamples,
  },
  (ctx, input) => samples(ctx, input),
);
