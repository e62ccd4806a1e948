import { liveEvent, liveInput } from "#server/contracts/live.ts";
import { followTopics } from "#server/http/follow-topics.ts";
import { route } from "#server/http/route.ts";

export const GET = route(
  {
    method: "GET",
    path: "/live",
    summary: "Names of what changed, as it changes",
    action: "live.subscribe",
    // Until there is an admin, anybody follows the steps of start-up.
    anonymousInput: true,
    input: liveInput,
    output: liveEvent,
    stream: "always",
  },
  (ctx, input) => followTopics(ctx, input, ctx.signal),
);
