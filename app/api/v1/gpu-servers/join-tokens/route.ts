import { createJoinTokenInput, joinToken } from "#server/contracts/gpu-server.ts";
import { route } from "#server/http/route.ts";
import { createJoinToken } from "#server/services/gpu-server/create-join-token.ts";

export const POST = route(
  {
    method: "POST",
    path: "/gpu-servers/join-tokens",
    summary: "A one-time token with which a GPU server joins",
    action: "gpu-server.create-join-token",
    input: createJoinTokenInput,
    output: joinToken,
    status: 201,
  },
  (ctx, input) => createJoinToken(ctx, input),
);
