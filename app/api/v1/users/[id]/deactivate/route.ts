import { userInput, userView } from "#server/contracts/user.ts";
import { route } from "#server/http/route.ts";
import { deactivate } from "#server/services/user/deactivate.ts";

export const POST = route(
  {
    method: "POST",
    path: "/users/{id}/deactivate",
    summary: "Close an account: no sign-in, workspaces stopped, GPUs given back, files kept",
    action: "user.deactivate",
    input: userInput,
    output: userView,
  },
  (ctx, input) => deactivate(ctx, input),
);
