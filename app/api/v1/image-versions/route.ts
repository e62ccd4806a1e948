import { nothing } from "#server/contracts/common.ts";
import { imageVersionList, imageVersionView, proposeImageInput } from "#server/contracts/image.ts";
import { route } from "#server/http/route.ts";
import { listVersions } from "#server/services/image/list-versions.ts";
import { propose } from "#server/services/image/propose.ts";

export const GET = route(
  {
    method: "GET",
    path: "/image-versions",
    summary: "Every version of every environment; proposals of the own teams alone",
    action: "image.list-versions",
    input: nothing,
    output: imageVersionList,
  },
  (ctx) => listVersions(ctx),
);

export const POST = route(
  {
    method: "POST",
    path: "/image-versions",
    summary: "Propose an environment, or its next version: it is locked, built and tested before anybody is offered it",
    action: "image.propose",
    input: proposeImageInput,
    output: imageVersionView,
    status: 201,
  },
  (ctx, input) => propose(ctx, input),
);
