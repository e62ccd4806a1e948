import { z } from "zod";
import { gpuServerId, version } from "#server/contracts/common.ts";
import { setGpuServerZoneInput } from "#server/contracts/gpu-server.ts";
import { route } from "#server/http/route.ts";
import { setZone } from "#server/services/gpu-server/set-zone.ts";

const output = z.strictObject({ serverId: z.string(), zone: z.string().nullable(), zoneVersion: version });
const input = setGpuServerZoneInput.omit({ serverId: true }).extend({ id: gpuServerId });

export const PUT = route(
  {
    method: "PUT",
    path: "/gpu-servers/{id}/zone",
    summary: "Say where a GPU server stands, for requests that need to be near",
    action: "gpu-server.set-zone",
    input,
    output,
  },
  (ctx, { id, ...rest }) => setZone(ctx, { serverId: id, ...rest }),
);
