import { teamInput, teamView } from "#server/contracts/team.ts";
import { route } from "#server/http/route.ts";
import { archive } from "#server/services/team/archive.ts";

export const POST = route(
  {
    method: "POST",
    path: "/teams/{id}/archive",
    summary:
      "Put a team away that nobody works in: its promises are free, its people leave, its accounts and audit stay",
    action: "team.archive",
    input: teamInput,
    output: teamView,
  },
  (ctx, input) => archive(ctx, input),
);
