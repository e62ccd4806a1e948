import { nothing } from "#server/contracts/common.ts";
import { imageVersionDetail, imageVersionInput } from "#server/contracts/image.ts";
import { route } from "#server/http/route.ts";
import { getVersion } from "#server/services/image/get-version.ts";
import { withdraw } from "#server/services/image/withdraw.ts";

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

export const DELETE = route(
  {
    method: "DELETE",
    path: "/image-versions/{id}",
    summary: "Take a proposal back that nobody has approved",
    action: "image.propose",
    input: imageVersionInput,
    output: nothing,
  },
  (ctx, input) => withdraw(ctx, input),
);
