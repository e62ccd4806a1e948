import { z } from "zod";
import { leaseExplanation } from "#server/contracts/lease.ts";
import { route } from "#server/http/route.ts";
import { explanation } from "#server/services/lease/explanation.ts";

export const GET = route(
  {
    method: "GET",
    path: "/lease-requests/{id}/explanation",
    summary: "Why a request waits: the rule, who holds what, what fits now, and when",
    action: "lease.explain",
    input: z.strictObject({ id: z.string().max(64) }),
    output: leaseExplanation,
  },
  (ctx, input) => explanation(ctx, input),
);
