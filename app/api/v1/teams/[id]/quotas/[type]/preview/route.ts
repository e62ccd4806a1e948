import { gpuType, teamId } from "#server/contracts/common.ts";
import { quotaEffects, setQuotaInput } from "#server/contracts/team.ts";
import { route } from "#server/http/route.ts";
import { previewQuota } from "#server/services/team/preview-quota.ts";

const input = setQuotaInput.omit({ teamId: true, gpuType: true }).extend({ id: teamId, type: gpuType });

export const POST = route(
  {
    method: "POST",
    path: "/teams/{id}/quotas/{type}/preview",
    summary: "What saving this quota would do; nothing is saved",
    action: "team.set-quota",
    input,
    output: quotaEffects,
  },
  (ctx, { id, type, ...quota }) => previewQuota(ctx, { teamId: id, gpuType: type, ...quota }),
);
