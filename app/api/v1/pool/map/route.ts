import { poolMap, poolMapInput } from "#server/contracts/gpu-server.ts";
import { route } from "#server/http/route.ts";
import { map } from "#server/services/gpu-server/map.ts";

export const GET = route(
  {
    method: "GET",
    path: "/pool/map",
    summary: "The pool at a glance: figures by type, a short record of each device",
    action: "pool.read",
    input: poolMapInput,
    output: poolMap,
  },
  (ctx, input) => map(ctx, input),
);
