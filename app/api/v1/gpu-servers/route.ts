import { nothing } from "#server/contracts/common.ts";
import { gpuServerList } from "#server/contracts/gpu-server.ts";
import { route } from "#server/http/route.ts";
import { list } from "#server/services/gpu-server/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/gpu-servers",
    summary: "GPU servers",
    action: "gpu-server.list",
    input: nothing,
    output: gpuServerList,
  },
  (ctx) => list(ctx),
);
