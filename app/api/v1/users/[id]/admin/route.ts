import { setAdminInput, userView } from "#server/contracts/user.ts";
import { route } from "#server/http/route.ts";
import { setAdmin } from "#server/services/user/set-admin.ts";

export const PUT = route(
  {
    method: "PUT",
    path: "/users/{id}/admin",
    summary: "Make a person an admin, or take that back",
    action: "user.set-admin",
    input: setAdminInput,
    output: userView,
  },
  (ctx, input) => setAdmin(ctx, input),
);
