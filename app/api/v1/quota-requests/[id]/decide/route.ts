import { decideQuotaInput, quotaRequestView } from "#server/contracts/sharing.ts";
import { route } from "#server/http/route.ts";
import { decide } from "#server/services/quota-request/decide.ts";

export const POST = route(
  {
    method: "POST",
    path: "/quota-requests/{id}/decide",
    summary: "Approve or refuse a request for more quota",
    action: "quota-request.decide",
    input: decideQuotaInput,
    output: quotaRequestView,
  },
  (ctx, input) => decide(ctx, input),
);
