import { gpuType, teamId } from "#server/contracts/common.ts";
import { quotaWindows, readQuotaWindowsInput, setQuotaWindowsInput } from "#server/contracts/sharing.ts";
import { route } from "#server/http/route.ts";
import { readQuotaWindows } from "#server/services/team/read-quota-windows.ts";
import { setQuotaWindows } from "#server/services/team/set-quota-windows.ts";

const named = { id: teamId, type: gpuType };
const edit = setQuotaWindowsInput.omit({ teamId: true, gpuType: true }).extend(named);

export const GET = route(
  {
    method: "GET",
    path: "/teams/{id}/quotas/{type}/windows",
    summary: "The calendar of a quota",
    action: "team.read",
    input: readQuotaWindowsInput.omit({ teamId: true, gpuType: true }).extend(named),
    output: quotaWindows,
  },
  (ctx, { id, type }) => readQuotaWindows(ctx, { teamId: id, gpuType: type }),
);

export const PUT = route(
  {
    method: "PUT",
    path: "/teams/{id}/quotas/{type}/windows",
    summary: "Set the calendar of a quota",
    action: "team.set-quota",
    input: edit,
    output: quotaWindows,
  },
  (ctx, { id, type, ...calendar }) => setQuotaWindows(ctx, { teamId: id, gpuType: type, ...calendar }),
);

export const DELETE = route(
  {
    method: "DELETE",
    path: "/teams/{id}/quotas/{type}/windows",
    summary: "Remove the calendar of a quota: it is the same at every hour",
    action: "team.set-quota",
    input: edit.omit({ windows: true }),
    output: quotaWindows,
  },
  (ctx, { id, type, version }) => setQuotaWindows(ctx, { teamId: id, gpuType: type, windows: [], version }),
);
