import { accessTokenList, createAccessTokenInput, createAccessTokenOutput } from "#server/contracts/access-token.ts";
import { nothing } from "#server/contracts/common.ts";
import { route } from "#server/http/route.ts";
import { create } from "#server/services/access-token/create.ts";
import { list } from "#server/services/access-token/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/access-tokens",
    summary: "One's own access tokens",
    action: "access-token.list",
    input: nothing,
    output: accessTokenList,
  },
  (ctx) => list(ctx),
);

export const POST = route(
  {
    method: "POST",
    path: "/access-tokens",
    summary: "Make an access token; its secret is shown this once",
    action: "access-token.create",
    input: createAccessTokenInput,
    output: createAccessTokenOutput,
    status: 201,
  },
  (ctx, input) => create(ctx, input),
);
