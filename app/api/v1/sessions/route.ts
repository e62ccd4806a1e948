import { nothing } from "#server/contracts/common.ts";
import { sessionList } from "#server/contracts/session.ts";
import { route } from "#server/http/route.ts";
import { list } from "#server/services/session/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/sessions",
    summary: "Where you are signed in",
    action: "session.list",
    input: nothing,
    output: sessionList,
  },
  (ctx) => list(ctx),
);
