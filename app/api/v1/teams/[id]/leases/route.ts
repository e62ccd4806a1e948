import { leaseList } from "#server/contracts/gpu-server.ts";
import { teamInput } from "#server/contracts/team.ts";
import { route } from "#server/http/route.ts";
import { teamLeases } from "#server/services/lease/team-leases.ts";

export const GET = route(
  {
    method: "GET",
    path: "/teams/{id}/leases",
    summary: "Who in a team holds what now",
    action: "team.read",
    input: teamInput,
    output: leaseList,
  },
  (ctx, input) => teamLeases(ctx, input),
);
