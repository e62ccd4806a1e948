import { datasetInput, datasetView } from "#server/contracts/dataset.ts";
import { route } from "#server/http/route.ts";
import { measure } from "#server/services/dataset/measure.ts";

export const POST = route(
  {
    method: "POST",
    path: "/datasets/{id}/measure",
    summary: "Have a folder measured again",
    action: "dataset.edit",
    input: datasetInput,
    output: datasetView,
    status: 202,
  },
  (ctx, input) => measure(ctx, input),
);
