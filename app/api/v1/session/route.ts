import { nothing } from "#server/contracts/common.ts";
import { route } from "#server/http/route.ts";
import { endOwn } from "#server/services/session/end-own.ts";

export const DELETE = route(
  {
    method: "DELETE",
    path: "/session",
    summary: "Sign out: this browser session ends everywhere",
    action: "session.read",
    input: nothing,
    output: nothing,
  },
  (ctx) => endOwn(ctx),
);
