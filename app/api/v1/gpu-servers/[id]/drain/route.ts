import { z } from "zod";
import { gpuServerId } from "#server/contracts/common.ts";
import { drainGpuServerInput } from "#server/contracts/gpu-server.ts";
import { route } from "#server/http/route.ts";
import { drain } from "#server/services/gpu-server/drain.ts";

const output = z.strictObject({ serverId: z.string(), draining: z.boolean() });
const input = drainGpuServerInput.omit({ serverId: true }).extend({ id: gpuServerId });

export const POST = route(
  {
    method: "POST",
    path: "/gpu-servers/{id}/drain",
    summary: "Let what runs finish and take nothing new, or take leases again",
    action: "gpu-server.drain",
    input,
    output,
  },
  (ctx, { id, ...rest }) => drain(ctx, { serverId: id, ...rest }),
);
