import { z } from "zod";
import { extendLeaseAnswer, extendLeaseInput } from "#server/contracts/lease.ts";
import { route } from "#server/http/route.ts";
import { extend } from "#server/services/lease/extend.ts";

export const POST = route(
  {
    method: "POST",
    path: "/leases/{id}/extend",
    summary: "Let a lease last longer",
    action: "lease.extend",
    input: extendLeaseInput.extend({ id: z.string().max(64) }),
    output: extendLeaseAnswer,
  },
  (ctx, { id, forSeconds }) => extend(ctx, { leaseId: id, forSeconds }),
);
