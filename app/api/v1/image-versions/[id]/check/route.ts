import { imageVersionInput, imageVersionView } from "#server/contracts/image.ts";
import { route } from "#server/http/route.ts";
import { checkAgain } from "#server/services/image/check-again.ts";

export const POST = route(
  {
    method: "POST",
    path: "/image-versions/{id}/check",
    summary: "Have a proposal checked once more",
    action: "image.propose",
    input: imageVersionInput,
    output: imageVersionView,
  },
  (ctx, input) => checkAgain(ctx, input),
);
