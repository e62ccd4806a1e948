import { removeVariableInput, setVariableInput, workspaceVariableList } from "#server/contracts/workspace-variable.ts";
import { route } from "#server/http/route.ts";
import { remove } from "#server/services/workspace-variable/remove.ts";
import { set } from "#server/services/workspace-variable/set.ts";

export const PUT = route(
  {
    method: "PUT",
    path: "/workspaces/{id}/variables/{name}",
    summary: "Set an environment variable or a secret",
    action: "workspace.change",
    input: setVariableInput,
    output: workspaceVariableList,
  },
  (ctx, input) => set(ctx, input),
);

export const DELETE = route(
  {
    method: "DELETE",
    path: "/workspaces/{id}/variables/{name}",
    summary: "Remove an environment variable",
    action: "workspace.change",
    input: removeVariableInput,
    output: workspaceVariableList,
  },
  (ctx, input) => remove(ctx, input),
);
