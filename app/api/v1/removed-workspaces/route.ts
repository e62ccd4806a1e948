import { nothing } from "#server/contracts/common.ts";
import { removedWorkspaceList } from "#server/contracts/workspace.ts";
import { route } from "#server/http/route.ts";
import { listRemoved } from "#server/services/workspace/list-removed.ts";

export const GET = route(
  {
    method: "GET",
    path: "/removed-workspaces",
    summary: "Removed workspaces whose files are still kept",
    action: "workspace.list",
    input: nothing,
    output: removedWorkspaceList,
  },
  (ctx) => listRemoved(ctx),
);
