import { gpuType, teamId } from "#server/contracts/common.ts";
import { packingProof, setQuotaWindowsInput } from "#server/contracts/sharing.ts";
import { route } from "#server/http/route.ts";
import { previewQuotaWindows } from "#server/services/team/preview-quota-windows.ts";

export const POST = route(
  {
    method: "POST",
    path: "/teams/{id}/quotas/{type}/windows/preview",
    summary: "Whether the guarantees fit the devices at every time of this calendar; nothing is saved",
    action: "team.set-quota",
    input: setQuotaWindowsInput.omit({ teamId: true, gpuType: true }).extend({ id: teamId, type: gpuType }),
    output: packingProof,
  },
  (ctx, { id, type, ...calendar }) => previewQuotaWindows(ctx, { teamId: id, gpuType: type, ...calendar }),
);
