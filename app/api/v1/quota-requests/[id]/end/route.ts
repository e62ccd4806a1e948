import { endQuotaRequestInput, quotaRequestView } from "#server/contracts/sharing.ts";
import { route } from "#server/http/route.ts";
import { end } from "#server/services/quota-request/end.ts";

export const POST = route(
  {
    method: "POST",
    path: "/quota-requests/{id}/end",
    summary: "End an approved increase of quota before its time",
    action: "quota-request.decide",
    input: endQuotaRequestInput,
    output: quotaRequestView,
  },
  (ctx, input) => end(ctx, input),
);
