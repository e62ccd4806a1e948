import { drainDeviceInput, drainDeviceOutput } from "#server/contracts/gpu-server.ts";
import { route } from "#server/http/route.ts";
import { drainDevice } from "#server/services/gpu-server/drain-device.ts";

export const POST = route(
  {
    method: "POST",
    path: "/gpus/{id}/drain",
    summary: "Let what runs on a device finish and take nothing new there, or take leases again",
    action: "gpu-server.drain",
    input: drainDeviceInput,
    output: drainDeviceOutput,
  },
  (ctx, input) => drainDevice(ctx, input),
);
