import { teamId } from "#server/contracts/common.ts";
import { setPolicyInput, teamPolicyView } from "#server/contracts/sharing.ts";
import { teamInput } from "#server/contracts/team.ts";
import { route } from "#server/http/route.ts";
import { readPolicy } from "#server/services/team/read-policy.ts";
import { setPolicy } from "#server/services/team/set-policy.ts";

export const GET = route(
  {
    method: "GET",
    path: "/teams/{id}/policy",
    summary: "How long a team's leases last, when idle ones end, and with whom they share cards",
    action: "team.read",
    input: teamInput,
    output: teamPolicyView,
  },
  (ctx, input) => readPolicy(ctx, input),
);

export const PUT = route(
  {
    method: "PUT",
    path: "/teams/{id}/policy",
    summary: "Set how long a team's leases last, when idle ones end, and with whom they share cards",
    action: "team.set-policy",
    input: setPolicyInput.omit({ teamId: true }).extend({ id: teamId }),
    output: teamPolicyView,
  },
  (ctx, { id, ...policy }) => setPolicy(ctx, { teamId: id, ...policy }),
);
