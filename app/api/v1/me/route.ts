import { nothing } from "#server/contracts/common.ts";
import { me } from "#server/contracts/session.ts";
import { route } from "#server/http/route.ts";
import { me as readMe } from "#server/services/session/me.ts";

export const GET = route(
  { method: "GET", path: "/me", summary: "Who is signed in", action: "session.read", input: nothing, output: me },
  (ctx) => readMe(ctx),
);
