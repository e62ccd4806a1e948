import { changePasswordInput, changePasswordOutput } from "#server/contracts/user.ts";
import { route } from "#server/http/route.ts";
import { changePassword } from "#server/services/user/change-password.ts";

export const PUT = route(
  {
    method: "PUT",
    path: "/me/password",
    summary: "Change your own password; your other browser sessions end",
    action: "user.change-password",
    input: changePasswordInput,
    output: changePasswordOutput,
  },
  (ctx, input) => changePassword(ctx, input),
);
