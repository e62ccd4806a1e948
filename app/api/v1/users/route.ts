import { listUsersInput, userList } from "#server/contracts/user.ts";
import { route } from "#server/http/route.ts";
import { list } from "#server/services/user/list.ts";

export const GET = route(
  { method: "GET", path: "/users", summary: "Everybody", action: "user.list", input: listUsersInput, output: userList },
  (ctx, input) => list(ctx, input),
);
