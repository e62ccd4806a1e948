import { nothing } from "#server/contracts/common.ts";
import { userList } from "#server/contracts/user.ts";
import { route } from "#server/http/route.ts";
import { list } from "#server/services/user/list.ts";

export const GET = route(
  { method: "GET", path: "/users", summary: "Everybody", action: "user.list", input: nothing, output: userList },
  (ctx) => list(ctx),
);
