import { chooseDatasetsInput, workspaceDatasetList } from "#server/contracts/dataset.ts";
import { workspaceInput } from "#server/contracts/workspace.ts";
import { route } from "#server/http/route.ts";
import { choose } from "#server/services/workspace-dataset/choose.ts";
import { list } from "#server/services/workspace-dataset/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/workspaces/{id}/datasets",
    summary: "The datasets of a workspace, and how far each is in its node's cache",
    action: "workspace.read",
    input: workspaceInput,
    output: workspaceDatasetList,
  },
  (ctx, input) => list(ctx, input),
);

export const PUT = route(
  {
    method: "PUT",
    path: "/workspaces/{id}/datasets",
    summary: "Choose which datasets a workspace mounts from its next start on",
    action: "workspace.change",
    input: chooseDatasetsInput,
    output: workspaceDatasetList,
  },
  (ctx, input) => choose(ctx, input),
);
