import { z } from "zod";
import { gpuServerId } from "#server/contracts/common.ts";
import { drainEffects as output } from "#server/contracts/gpu-server.ts";
import { route } from "#server/http/route.ts";
import { drainEffects } from "#server/services/gpu-server/drain-effects.ts";

export const GET = route(
  {
    method: "GET",
    path: "/gpu-servers/{id}/drain-effects",
    summary: "Whom a drain of a GPU server would concern, and what would be left",
    action: "gpu-server.drain",
    input: z.strictObject({ id: gpuServerId }),
    output,
  },
  (ctx, { id }) => drainEffects(ctx, { serverId: id }),
);
