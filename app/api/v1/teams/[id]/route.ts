import { teamInput, teamView } from "#server/contracts/team.ts";
import { route } from "#server/http/route.ts";
import { get } from "#server/services/team/get.ts";

export const GET = route(
  {
    method: "GET",
    path: "/teams/{id}",
    summary: "A team with its people and quotas",
    action: "team.read",
    input: teamInput,
    output: teamView,
  },
  (ctx, input) => get(ctx, input),
);
