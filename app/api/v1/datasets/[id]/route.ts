import { nothing } from "#server/contracts/common.ts";
import { datasetInput, datasetView, editDatasetInput } from "#server/contracts/dataset.ts";
import { route } from "#server/http/route.ts";
import { edit } from "#server/services/dataset/edit.ts";
import { remove } from "#server/services/dataset/remove.ts";

export const PUT = route(
  {
    method: "PUT",
    path: "/datasets/{id}",
    summary: "Change what is told of a dataset, and whether it is read ahead",
    action: "dataset.edit",
    input: editDatasetInput,
    output: datasetView,
  },
  (ctx, input) => edit(ctx, input),
);

export const DELETE = route(
  {
    method: "DELETE",
    path: "/datasets/{id}",
    summary: "Forget a dataset; its files stay",
    action: "dataset.remove",
    input: datasetInput,
    output: nothing,
  },
  (ctx, input) => remove(ctx, input),
);
