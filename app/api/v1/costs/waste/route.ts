import { type Waste, waste, wasteInput } from "#server/contracts/cost.ts";
import { csvResponse } from "#server/http/csv.ts";
import { route } from "#server/http/route.ts";
import { waste as readWaste } from "#server/services/cost/waste.ts";

export const GET = route(
  {
    method: "GET",
    path: "/costs/waste",
    summary: "A month's GPU time that did nothing, in hours and in money, and who held it",
    action: "cost.read",
    input: wasteInput,
    output: waste,
    csv: true,
  },
  async (ctx, input) => {
    const answer = await readWaste(ctx, input);
    return input.format === "csv" ? asCsv(answer, input.by) : answer;
  },
);

const hours = (value: number) => Math.round(value * 1e4) / 1e4;

/** A line for each of those who held, then one for each way in which nobody did. */
function asCsv({ month, currency, rows, parts }: Waste, by: string): Response {
  const money = (cents: number | null) => (cents === null ? null : cents / 100);
  const isOfTeam = by === "person" || by === "workspace";
  const team = (name: string | null) => (isOfTeam ? [name] : []);
  return csvResponse(
    `gpu-audit-${by}-${month}.csv`,
    [by, "id", ...(isOfTeam ? ["team"] : []), "held GPU-hours", "idle GPU-hours", `idle ${currency}`],
    [
      ...rows.map((row) => [
        row.name,
        row.id,
        ...team(row.within),
        hours(row.held),
        hours(row.hours),
        money(row.cents),
      ]),
      ...parts
        .filter(({ what }) => what !== "idle")
        .map((part) => [part.what, null, ...team(null), null, hours(part.hours), money(part.cents)]),
    ],
  );
}
