import { nothing } from "#server/contracts/common.ts";
import { workspaceInput } from "#server/contracts/workspace.ts";
import { route } from "#server/http/route.ts";
import { deleteFiles } from "#server/services/workspace/delete-files.ts";

export const DELETE = route(
  {
    method: "DELETE",
    path: "/removed-workspaces/{id}",
    summary: "Delete the files of a removed workspace now",
    action: "workspace.delete-files",
    input: workspaceInput,
    output: nothing,
  },
  (ctx, input) => deleteFiles(ctx, input),
);
