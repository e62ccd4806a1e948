import { nothing } from "#server/contracts/common.ts";
import { whatIfInput, whatIfList, whatIfView } from "#server/contracts/what-if.ts";
import { route } from "#server/http/route.ts";
import { ask } from "#server/services/what-if/ask.ts";
import { list } from "#server/services/what-if/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/what-ifs",
    summary: "The pool of now, to propose another, and what was asked lately",
    action: "what-if.ask",
    input: nothing,
    output: whatIfList,
  },
  (ctx) => list(ctx),
);

export const POST = route(
  {
    method: "POST",
    path: "/what-ifs",
    summary: "Play the demand of a time again on another pool",
    action: "what-if.ask",
    input: whatIfInput,
    output: whatIfView,
    status: 202,
  },
  (ctx, input) => ask(ctx, input),
);
