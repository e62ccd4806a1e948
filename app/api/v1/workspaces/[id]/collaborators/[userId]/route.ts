import { nothing } from "#server/contracts/common.ts";
import { removeCollaboratorInput } from "#server/contracts/workspace-collaborator.ts";
import { route } from "#server/http/route.ts";
import { remove } from "#server/services/workspace-collaborator/remove.ts";

export const DELETE = route(
  {
    method: "DELETE",
    path: "/workspaces/{id}/collaborators/{userId}",
    summary: "Take a collaborator out of a workspace, or leave it",
    action: "workspace.unshare",
    input: removeCollaboratorInput,
    output: nothing,
  },
  (ctx, input) => remove(ctx, input),
);
