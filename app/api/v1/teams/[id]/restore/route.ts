import { teamInput, teamView } from "#server/contracts/team.ts";
import { route } from "#server/http/route.ts";
import { restore } from "#server/services/team/restore.ts";

export const POST = route(
  {
    method: "POST",
    path: "/teams/{id}/restore",
    summary: "Bring a team back that was put away, without people and promises",
    action: "team.archive",
    input: teamInput,
    output: teamView,
  },
  (ctx, input) => restore(ctx, input),
);
