import { type TeamBudget, teamBudget, teamBudgetInput } from "#server/contracts/team.ts";
import { csvResponse } from "#server/http/csv.ts";
import { route } from "#server/http/route.ts";
import { budget } from "#server/services/team/budget.ts";

export const GET = route(
  {
    method: "GET",
    path: "/teams/{id}/budget",
    summary: "The GPU-hours of this month against the team's budgets, day by day",
    action: "team.read-budget",
    input: teamBudgetInput,
    output: teamBudget,
    csv: true,
  },
  async (ctx, input) => {
    const answer = await budget(ctx, input);
    return input.format === "csv" ? asCsv(answer) : answer;
  },
);

/** A line for each GPU type and day. */
function asCsv({ month, budgets }: TeamBudget): Response {
  return csvResponse(
    `budget-${month}.csv`,
    ["GPU type", "day", "used GPU-hours", "budget of the month, GPU-hours"],
    budgets.flatMap(({ gpuType, milliHours, days }) =>
      days.map((day) => [gpuType, day.day, day.milliHours / 1000, milliHours / 1000]),
    ),
  );
}
