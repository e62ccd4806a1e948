import { z } from "zod";
import { gpuServerId } from "#server/contracts/common.ts";
import { poolDeviceList } from "#server/contracts/gpu-server.ts";
import { route } from "#server/http/route.ts";
import { devices } from "#server/services/gpu-server/devices.ts";

export const GET = route(
  {
    method: "GET",
    path: "/gpu-servers/{id}/devices",
    summary: "A GPU server's devices with their leases",
    action: "pool.read",
    input: z.strictObject({ id: gpuServerId }),
    output: poolDeviceList,
  },
  (ctx, { id }) => devices(ctx, { serverId: id }),
);
