import { revokeAccessTokenInput } from "#server/contracts/access-token.ts";
import { nothing } from "#server/contracts/common.ts";
import { route } from "#server/http/route.ts";
import { revoke } from "#server/services/access-token/revoke.ts";

export const DELETE = route(
  {
    method: "DELETE",
    path: "/access-tokens/{id}",
    summary: "Revoke an access token",
    action: "access-token.revoke",
    input: revokeAccessTokenInput,
    output: nothing,
  },
  (ctx, input) => revoke(ctx, input),
);
