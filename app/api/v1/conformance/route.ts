import { nothing } from "#server/contracts/common.ts";
import { conformanceList } from "#server/contracts/conformance.ts";
import { route } from "#server/http/route.ts";
import { list } from "#server/services/conformance/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/conformance",
    summary: "Which packages were run on which GPUs, and how many of their tests passed",
    action: "conformance.list",
    input: nothing,
    output: conformanceList,
  },
  (ctx) => list(ctx),
);
