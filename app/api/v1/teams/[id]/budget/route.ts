import { teamBudget, teamInput } from "#server/contracts/team.ts";
import { route } from "#server/http/route.ts";
import { budget } from "#server/services/team/budget.ts";

export const GET = route(
  {
    method: "GET",
    path: "/teams/{id}/budget",
    summary: "The GPU-hours of this month against the team's budgets, day by day",
    action: "team.read-budget",
    input: teamInput,
    output: teamBudget,
  },
  (ctx, input) => budget(ctx, input),
);
