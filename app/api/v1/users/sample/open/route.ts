import { openSampleInput, openSampleOutput } from "#server/contracts/user.ts";
import { route } from "#server/http/route.ts";
import { openSample } from "#server/services/user/open-sample.ts";

export const POST = route(
  {
    method: "POST",
    path: "/users/sample/open",
    summary: "A one-time link that opens a window as the sample user",
    action: "user.open-sample",
    input: openSampleInput,
    output: openSampleOutput,
  },
  (ctx, input) => openSample(ctx, input),
);
