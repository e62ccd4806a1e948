import { nothing } from "#server/contracts/common.ts";
import { teamPolicyList } from "#server/contracts/sharing.ts";
import { route } from "#server/http/route.ts";
import { listPolicies } from "#server/services/team/list-policies.ts";

export const GET = route(
  {
    method: "GET",
    path: "/team-policies",
    summary: "How long every team's leases last, when idle ones end, and with whom they share cards",
    action: "team.list-policies",
    input: nothing,
    output: teamPolicyList,
  },
  (ctx) => listPolicies(ctx),
);
