import { gpuType, teamId } from "#server/contracts/common.ts";
import { setQuotaInput, teamView } from "#server/contracts/team.ts";
import { route } from "#server/http/route.ts";
import { setQuota } from "#server/services/team/set-quota.ts";

const input = setQuotaInput.omit({ teamId: true, gpuType: true }).extend({ id: teamId, type: gpuType });

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
