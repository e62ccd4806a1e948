import { nothing } from "#server/contracts/common.ts";
import { poolOverview } from "#server/contracts/gpu-server.ts";
import { route } from "#server/http/route.ts";
import { overview } from "#server/services/gpu-server/overview.ts";

export const GET = route(
  {
    method: "GET",
    path: "/pool",
    summary: "The pool: servers, devices, leases, queue",
    action: "pool.read",
    input: nothing,
    output: poolOverview,
  },
  (ctx) => overview(ctx),
);
