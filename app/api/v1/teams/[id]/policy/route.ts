import { teamId } from "#server/contracts/common.ts";
import { teamPolicy } from "#server/contracts/sharing.ts";
import { route } from "#server/http/route.ts";
import { setPolicy } from "#server/services/team/set-policy.ts";

export const PUT = route(
  {
    method: "PUT",
    path: "/teams/{id}/policy",
    summary: "Set how long a team's leases last, when idle ones end, and with whom they share cards",
    action: "team.set-policy",
    input: teamPolicy.extend({ id: teamId }),
    output: teamPolicy,
  },
  (ctx, { id, ...policy }) => setPolicy(ctx, { teamId: id, ...policy }),
);
