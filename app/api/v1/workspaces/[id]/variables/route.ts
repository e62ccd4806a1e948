import { workspaceInput } from "#server/contracts/workspace.ts";
import { workspaceVariableList } from "#server/contracts/workspace-variable.ts";
import { route } from "#server/http/route.ts";
import { list } from "#server/services/workspace-variable/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/workspaces/{id}/variables",
    summary: "Environment variables of a workspace",
    action: "workspace.change",
    input: workspaceInput,
    output: workspaceVariableList,
  },
  (ctx, input) => list(ctx, input),
);
