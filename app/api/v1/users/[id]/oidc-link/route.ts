import { userInput, userView } from "#server/contracts/user.ts";
import { route } from "#server/http/route.ts";
import { unlinkOidc } from "#server/services/user/unlink-oidc.ts";

export const DELETE = route(
  {
    method: "DELETE",
    path: "/users/{id}/oidc-link",
    summary:
      "Remove an account's link to the identity provider; the next sign-in with its verified e-mail makes a new one",
    action: "user.unlink-oidc",
    input: userInput,
    output: userView,
  },
  (ctx, input) => unlinkOidc(ctx, input),
);
