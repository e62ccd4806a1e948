import { setGpuKindInput, setGpuKindOutput } from "#server/contracts/gpu-server.ts";
import { route } from "#server/http/route.ts";
import { setKind } from "#server/services/gpu-server/set-kind.ts";

export const PUT = route(
  {
    method: "PUT",
    path: "/gpus/{id}/kind",
    summary: "Say what the hardware behind a device is",
    action: "gpu-server.set-kind",
    input: setGpuKindInput,
    output: setGpuKindOutput,
  },
  (ctx, input) => setKind(ctx, input),
);
