import { nothing } from "#server/contracts/common.ts";
import { installInput } from "#server/contracts/gpu-server.ts";
import { route } from "#server/http/route.ts";
import { install } from "#server/services/gpu-server/install.ts";

export const GET = route(
  {
    method: "GET",
    path: "/gpu-servers/install",
    summary: "Download gpud or its install script; the bearer token is a join token",
    action: "gpu-server.join",
    input: installInput,
    output: nothing,
  },
  (ctx, input) => install(ctx, { ...input, authorization: ctx.request.headers.get("authorization") }),
);
