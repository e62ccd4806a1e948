import { nothing } from "#server/contracts/common.ts";
import { askQuotaInput, quotaRequestList, quotaRequestView } from "#server/contracts/sharing.ts";
import { route } from "#server/http/route.ts";
import { ask } from "#server/services/quota-request/ask.ts";
import { list } from "#server/services/quota-request/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/quota-requests",
    summary: "Requests for more quota that have not ended",
    action: "quota-request.list",
    input: nothing,
    output: quotaRequestList,
  },
  (ctx) => list(ctx),
);

export const POST = route(
  {
    method: "POST",
    path: "/quota-requests",
    summary: "Ask for more quota, for a time",
    action: "quota-request.ask",
    input: askQuotaInput,
    output: quotaRequestView,
    status: 201,
  },
  (ctx, input) => ask(ctx, input),
);
