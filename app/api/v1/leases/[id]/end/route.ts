import { leaseId } from "#server/contracts/common.ts";
import { endLeaseAnswer, endLeaseInput } from "#server/contracts/gpu-server.ts";
import { route } from "#server/http/route.ts";
import { end } from "#server/services/lease/end.ts";

const input = endLeaseInput.omit({ leaseId: true }).extend({ id: leaseId });

export const POST = route(
  {
    method: "POST",
    path: "/leases/{id}/end",
    summary: "End a lease; the notebook lives",
    action: "lease.end",
    input,
    output: endLeaseAnswer,
  },
  (ctx, { id, ...rest }) => end(ctx, { leaseId: id, ...rest }),
);
