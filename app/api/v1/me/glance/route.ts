import { nothing } from "#server/contracts/common.ts";
import { glance } from "#server/contracts/session.ts";
import { route } from "#server/http/route.ts";
import { glance as readGlance } from "#server/services/session/glance.ts";

export const GET = route(
  {
    method: "GET",
    path: "/me/glance",
    summary: "What you hold or wait for, what you were told, and what is stopped",
    action: "session.read",
    input: nothing,
    output: glance,
  },
  (ctx) => readGlance(ctx),
);
