import { imageVersionView, setVersionStateInput } from "#server/contracts/image.ts";
import { route } from "#server/http/route.ts";
import { setState } from "#server/services/image/set-state.ts";

export const PUT = route(
  {
    method: "PUT",
    path: "/image-versions/{id}/state",
    summary: "Retire a version of an environment, or approve it again",
    action: "image.set-state",
    input: setVersionStateInput,
    output: imageVersionView,
  },
  (ctx, input) => setState(ctx, input),
);
