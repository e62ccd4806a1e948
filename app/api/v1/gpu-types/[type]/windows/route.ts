import { gpuType } from "#server/contracts/common.ts";
import { kindWindows, setKindWindowsInput } from "#server/contracts/sharing.ts";
import { route } from "#server/http/route.ts";
import { setKindWindows } from "#server/services/gpu-type/set-kind-windows.ts";

export const PUT = route(
  {
    method: "PUT",
    path: "/gpu-types/{type}/windows",
    summary: "Set which kind of work a GPU type takes by weekday and hour",
    action: "gpu-type.set-windows",
    input: setKindWindowsInput.omit({ gpuType: true }).extend({ type: gpuType }),
    output: kindWindows,
  },
  (ctx, { type, windows }) => setKindWindows(ctx, { gpuType: type, windows }),
);
