import { workspaceInput } from "#server/contracts/workspace.ts";
import { workspaceLink } from "#server/contracts/workspace-collaborator.ts";
import { route } from "#server/http/route.ts";
import { readLink } from "#server/services/workspace-collaborator/read-link.ts";

export const GET = route(
  {
    method: "GET",
    path: "/workspaces/{id}/link",
    summary: "Whether a shared link lets whoever asks in, else whom to ask",
    action: "workspace.read-link",
    input: workspaceInput,
    output: workspaceLink,
  },
  (ctx, input) => readLink(ctx, input),
);
