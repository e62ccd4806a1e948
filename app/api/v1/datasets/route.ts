import { nothing } from "#server/contracts/common.ts";
import { datasetList, datasetView, registerDatasetInput } from "#server/contracts/dataset.ts";
import { route } from "#server/http/route.ts";
import { list } from "#server/services/dataset/list.ts";
import { register } from "#server/services/dataset/register.ts";

export const GET = route(
  {
    method: "GET",
    path: "/datasets",
    summary: "Everybody's datasets and those of the own teams",
    action: "dataset.list",
    input: nothing,
    output: datasetList,
  },
  (ctx) => list(ctx),
);

export const POST = route(
  {
    method: "POST",
    path: "/datasets",
    summary: "Register files as a dataset of a team, or of everybody",
    action: "dataset.register",
    input: registerDatasetInput,
    output: datasetView,
    status: 201,
  },
  (ctx, input) => register(ctx, input),
);
