import { nothing } from "#server/contracts/common.ts";
import { imageVersionList } from "#server/contracts/image.ts";
import { route } from "#server/http/route.ts";
import { listVersions } from "#server/services/image/list-versions.ts";

export const GET = route(
  {
    method: "GET",
    path: "/image-versions",
    summary: "Every version of every environment",
    action: "image.list-versions",
    input: nothing,
    output: imageVersionList,
  },
  (ctx) => listVersions(ctx),
);
