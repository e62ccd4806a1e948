import { nothing } from "#server/contracts/common.ts";
import { route } from "#server/http/route.ts";
import { removeSampleData } from "#server/services/sample-data/remove.ts";

export const DELETE = route(
  {
    method: "DELETE",
    path: "/sample-data",
    summary: "Remove the sample data of `npm start -- --demo`; the portal ends, and starts again without them",
    action: "sample-data.remove",
    input: nothing,
    output: nothing,
  },
  (ctx) => removeSampleData(ctx),
);
