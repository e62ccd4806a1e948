import { z } from "zod";
import { leaseList, listLeasesInput } from "#server/contracts/gpu-server.ts";
import { route } from "#server/http/route.ts";
import { list } from "#server/services/lease/list.ts";

const input = listLeasesInput.extend({ limit: z.coerce.number().int().min(1).max(500).default(200) });

export const GET = route(
  { method: "GET", path: "/leases", summary: "Leases one may see", action: "lease.list", input, output: leaseList },
  (ctx, input) => list(ctx, input),
);
