import { imageVersionEventList, imageVersionEventsInput } from "#server/contracts/image.ts";
import { route } from "#server/http/route.ts";
import { listEvents } from "#server/services/image/list-events.ts";

export const GET = route(
  {
    method: "GET",
    path: "/image-versions/{id}/events",
    summary: "Steps and log lines of the checks of a proposed environment",
    action: "image.read-version",
    input: imageVersionEventsInput,
    output: imageVersionEventList,
  },
  (ctx, input) => listEvents(ctx, input),
);
