import {
  createWorkspaceInput,
  listWorkspacesInput,
  workspaceList,
  workspaceView,
} from "#server/contracts/workspace.ts";
import { route } from "#server/http/route.ts";
import { create } from "#server/services/workspace/create.ts";
import { list } from "#server/services/workspace/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/workspaces",
    summary: "Workspaces one may see",
    action: "workspace.list",
    input: listWorkspacesInput,
    output: workspaceList,
  },
  (ctx, input) => list(ctx, input),
);

export const POST = route(
  {
    method: "POST",
    path: "/workspaces",
    summary: "Launch a workspace",
    action: "workspace.create",
    input: createWorkspaceInput,
    output: workspaceView,
    status: 201,
  },
  (ctx, input) => create(ctx, input),
);
