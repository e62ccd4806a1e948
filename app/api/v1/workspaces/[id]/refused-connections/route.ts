import { egressRefusalList } from "#server/contracts/egress.ts";
import { workspaceInput } from "#server/contracts/workspace.ts";
import { route } from "#server/http/route.ts";
import { refusals } from "#server/services/workspace/refusals.ts";

export const GET = route(
  {
    method: "GET",
    path: "/workspaces/{id}/refused-connections",
    summary: "List connections that the team's outgoing network policy refused",
    action: "workspace.read",
    input: workspaceInput,
    output: egressRefusalList,
  },
  (ctx, input) => refusals(ctx, input),
);
