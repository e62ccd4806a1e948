import { nothing } from "#server/contracts/common.ts";
import { completeSetupInput, completeSetupOutput, setupStatus } from "#server/contracts/setup.ts";
import { route } from "#server/http/route.ts";
import { complete } from "#server/services/setup/complete.ts";
import { status } from "#server/services/setup/status.ts";

export const GET = route(
  {
    method: "GET",
    path: "/setup",
    summary: "Whether this installation is set up, and its start-up steps",
    action: "setup.read",
    input: nothing,
    output: setupStatus,
  },
  (ctx) => status(ctx),
);

export const POST = route(
  {
    method: "POST",
    path: "/setup",
    summary: "Make the first admin and the first team with the set-up link's code",
    action: "setup.complete",
    input: completeSetupInput,
    output: completeSetupOutput,
    status: 201,
  },
  (ctx, input) => complete(ctx, input),
);
