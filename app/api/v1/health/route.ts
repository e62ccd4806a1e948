import { nothing } from "#server/contracts/common.ts";
import { health } from "#server/contracts/health.ts";
import { route } from "#server/http/route.ts";
import { read } from "#server/services/health/read.ts";

export const GET = route(
  {
    method: "GET",
    path: "/health",
    summary: "Whether every part works, and what to do where it does not",
    action: "health.read",
    input: nothing,
    output: health,
  },
  (ctx) => read(ctx),
);
