import { gpuType } from "#server/contracts/common.ts";
import { kindWindows, readKindWindowsInput, setKindWindowsInput } from "#server/contracts/sharing.ts";
import { route } from "#server/http/route.ts";
import { readKindWindows } from "#server/services/gpu-type/read-kind-windows.ts";
import { setKindWindows } from "#server/services/gpu-type/set-kind-windows.ts";

const edit = setKindWindowsInput.omit({ gpuType: true }).extend({ type: gpuType });

export const GET = route(
  {
    method: "GET",
    path: "/gpu-types/{type}/windows",
    summary: "Which kind of work a GPU type takes by weekday and hour",
    action: "calendar.list",
    input: readKindWindowsInput.omit({ gpuType: true }).extend({ type: gpuType }),
    output: kindWindows,
  },
  (ctx, { type }) => readKindWindows(ctx, { gpuType: type }),
);

export const PUT = route(
  {
    method: "PUT",
    path: "/gpu-types/{type}/windows",
    summary: "Set which kind of work a GPU type takes by weekday and hour",
    action: "gpu-type.set-windows",
    input: edit,
    output: kindWindows,
  },
  (ctx, { type, ...calendar }) => setKindWindows(ctx, { gpuType: type, ...calendar }),
);

export const DELETE = route(
  {
    method: "DELETE",
    path: "/gpu-types/{type}/windows",
    summary: "Remove the calendar of a GPU type: it takes all work at every hour",
    action: "gpu-type.set-windows",
    input: edit.omit({ windows: true }),
    output: kindWindows,
  },
  (ctx, { type, version }) => setKindWindows(ctx, { gpuType: type, windows: [], version }),
);
