import { gpuType, teamId } from "#server/contracts/common.ts";
import { removeQuotaInput, setQuotaInput, teamView } from "#server/contracts/team.ts";
import { route } from "#server/http/route.ts";
import { removeQuota } from "#server/services/team/remove-quota.ts";
import { setQuota } from "#server/services/team/set-quota.ts";

const named = { id: teamId, type: gpuType };
const input = setQuotaInput.omit({ teamId: true, gpuType: true }).extend(named);

export const PUT = route(
  {
    method: "PUT",
    path: "/teams/{id}/quotas/{type}",
    summary: "Set what a team may borrow of a GPU type",
    action: "team.set-quota",
    input,
    output: teamView,
  },
  (ctx, { id, type, ...quota }) => setQuota(ctx, { teamId: id, gpuType: type, ...quota }),
);

export const DELETE = route(
  {
    method: "DELETE",
    path: "/teams/{id}/quotas/{type}",
    summary: "Remove the quota of a team for a GPU type",
    action: "team.set-quota",
    input: removeQuotaInput.omit({ teamId: true, gpuType: true }).extend(named),
    output: teamView,
  },
  (ctx, { id, type, version }) => removeQuota(ctx, { teamId: id, gpuType: type, version }),
);
