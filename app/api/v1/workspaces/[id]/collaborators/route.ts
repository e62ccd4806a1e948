import { workspaceInput } from "#server/contracts/workspace.ts";
import { addCollaboratorInput, workspaceCollaborators } from "#server/contracts/workspace-collaborator.ts";
import { route } from "#server/http/route.ts";
import { add } from "#server/services/workspace-collaborator/add.ts";
import { list } from "#server/services/workspace-collaborator/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/workspaces/{id}/collaborators",
    summary: "Who else may come into a workspace",
    action: "workspace.read",
    input: workspaceInput,
    output: workspaceCollaborators,
  },
  (ctx, input) => list(ctx, input),
);

export const POST = route(
  {
    method: "POST",
    path: "/workspaces/{id}/collaborators",
    summary: "Invite somebody into a workspace, or change what they may do there",
    action: "workspace.change",
    input: addCollaboratorInput,
    output: workspaceCollaborators,
  },
  (ctx, input) => add(ctx, input),
);
