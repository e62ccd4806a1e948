import { imageVersionDetail, imageVersionInput } from "#server/contracts/image.ts";
import { route } from "#server/http/route.ts";
import { getVersion } from "#server/services/image/get-version.ts";

export const GET = route(
  {
    method: "GET",
    path: "/image-versions/{id}",
    summary: "A version of an environment with its packages and their licences",
    action: "image.read-version",
    input: imageVersionInput,
    output: imageVersionDetail,
  },
  (ctx, input) => getVersion(ctx, input),
);
