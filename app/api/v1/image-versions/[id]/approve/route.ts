import { approveVersionInput, imageVersionView } from "#server/contracts/image.ts";
import { route } from "#server/http/route.ts";
import { approve } from "#server/services/image/approve.ts";

export const POST = route(
  {
    method: "POST",
    path: "/image-versions/{id}/approve",
    summary: "Roll a proposal that has passed its check out to teams, or to everybody",
    action: "image.set-state",
    input: approveVersionInput,
    output: imageVersionView,
  },
  (ctx, input) => approve(ctx, input),
);
