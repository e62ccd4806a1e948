import { userInput, userView } from "#server/contracts/user.ts";
import { route } from "#server/http/route.ts";
import { reactivate } from "#server/services/user/deactivate.ts";

export const POST = route(
  {
    method: "POST",
    path: "/users/{id}/reactivate",
    summary: "Open a deactivated account again",
    action: "user.reactivate",
    input: userInput,
    output: userView,
  },
  (ctx, input) => reactivate(ctx, input),
);
