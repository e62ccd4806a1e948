import { teamId } from "#server/contracts/common.ts";
import { egressPolicyView, setEgressPolicyInput } from "#server/contracts/egress.ts";
import { teamInput } from "#server/contracts/team.ts";
import { route } from "#server/http/route.ts";
import { readEgressPolicy } from "#server/services/team/read-egress-policy.ts";
import { setEgressPolicy } from "#server/services/team/set-egress-policy.ts";

export const GET = route(
  {
    method: "GET",
    path: "/teams/{id}/egress-policy",
    summary: "Read a team's outgoing network policy",
    action: "team.read",
    input: teamInput,
    output: egressPolicyView,
  },
  (ctx, input) => readEgressPolicy(ctx, input),
);

export const PUT = route(
  {
    method: "PUT",
    path: "/teams/{id}/egress-policy",
    summary: "Set a team's outgoing network policy",
    action: "team.set-egress-policy",
    input: setEgressPolicyInput.omit({ teamId: true }).extend({ id: teamId }),
    output: egressPolicyView,
  },
  (ctx, { id, ...policy }) => setEgressPolicy(ctx, { teamId: id, ...policy }),
);
