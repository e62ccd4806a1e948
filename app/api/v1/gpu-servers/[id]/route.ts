import { z } from "zod";
import { gpuServerId } from "#server/contracts/common.ts";
import { removeGpuServerAnswer } from "#server/contracts/gpu-server.ts";
import { route } from "#server/http/route.ts";
import { remove } from "#server/services/gpu-server/remove.ts";

export const DELETE = route(
  {
    method: "DELETE",
    path: "/gpu-servers/{id}",
    summary: "Remove a GPU server: its leases end and its key is revoked",
    action: "gpu-server.remove",
    input: z.strictObject({ id: gpuServerId }),
    output: removeGpuServerAnswer,
  },
  (ctx, { id }) => remove(ctx, { serverId: id }),
);
