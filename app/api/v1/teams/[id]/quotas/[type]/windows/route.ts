import { gpuType, teamId } from "#server/contracts/common.ts";
import { quotaWindows, setQuotaWindowsInput } from "#server/contracts/sharing.ts";
import { route } from "#server/http/route.ts";
import { setQuotaWindows } from "#server/services/team/set-quota-windows.ts";

export const PUT = route(
  {
    method: "PUT",
    path: "/teams/{id}/quotas/{type}/windows",
    summary: "Set the calendar of a quota",
    action: "team.set-quota",
    input: setQuotaWindowsInput.omit({ teamId: true, gpuType: true }).extend({ id: teamId, type: gpuType }),
    output: quotaWindows,
  },
  (ctx, { id, type, windows }) => setQuotaWindows(ctx, { teamId: id, gpuType: type, windows }),
);
