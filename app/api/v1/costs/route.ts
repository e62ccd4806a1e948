import { type CostReport, costReport, costsInput } from "#server/contracts/cost.ts";
import { csvResponse } from "#server/http/csv.ts";
import { route } from "#server/http/route.ts";
import { report } from "#server/services/cost/report.ts";

export const GET = route(
  {
    method: "GET",
    path: "/costs",
    summary: "A month's costs, by who held what",
    action: "cost.read",
    input: costsInput,
    output: costReport,
    csv: true,
  },
  async (ctx, input) => {
    const answer = await report(ctx, input);
    return input.format === "csv" ? asCsv(answer) : answer;
  },
);

function asCsv({ month, currency, lines }: CostReport): Response {
  return csvResponse(
    `costs-${month}.csv`,
    ["month", "GPU type", "what", "team", "person", "workspace", "workspace id", "GPU-hours", currency],
    lines.map((line) => [
      ...[month, line.gpuType, line.what, line.teamName, line.userName, line.workspaceName, line.workspaceId],
      ...[Math.round(line.hours * 1e4) / 1e4, line.cents === null ? null : (line.cents / 100).toFixed(2)],
    ]),
  );
}
