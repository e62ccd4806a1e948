import { type WhatIfView, whatIfGetInput, whatIfView } from "#server/contracts/what-if.ts";
import { SluiceError } from "#server/errors.ts";
import { csvResponse } from "#server/http/csv.ts";
import { route } from "#server/http/route.ts";
import { get } from "#server/services/what-if/get.ts";

export const GET = route(
  {
    method: "GET",
    path: "/what-ifs/{id}",
    summary: "A what-if with its answer, or how far that is",
    action: "what-if.ask",
    input: whatIfGetInput,
    output: whatIfView,
    csv: true,
  },
  async (ctx, input) => {
    const view = await get(ctx, input);
    if (input.format === "json") return view;
    if (view.result === null) throw new SluiceError("conflict", "There is no answer yet, and so no file of it.");
    return input.format === "csv" ? asCsv(view.result) : timeAsCsv(view.result);
  },
);

type Result = NonNullable<WhatIfView["result"]>;
const both = (name: string) => [`${name} now`, `${name} proposed`];
const rounded = (value: number | null) => (value === null ? null : Math.round(value * 1e4) / 1e4);

/** A line a type, and one for each of its teams. */
function asCsv({ currency, types }: Result): Response {
  const header = [
    ...["GPU type", "team", ...both("GPUs"), ...both("guaranteed GPUs"), ...both("limit GPUs")],
    ...["wait p50 s", "wait p95 s", "wait p99 s", "granted", "gave up", "refused", "held GPU-hours"].flatMap(both),
    ...["utilisation", "fairness", `cost ${currency}`].flatMap(both),
  ];
  const figures = ["waitP50", "waitP95", "waitP99", "granted", "gaveUp", "refused", "heldHours"] as const;
  const rows = types.flatMap(({ gpuType, now, proposed, teams }) => [
    [
      ...[gpuType, null, now.gpus, proposed.gpus, null, null, null, null],
      ...figures.flatMap((key) => [rounded(now[key]), rounded(proposed[key])]),
      ...[rounded(now.utilisation), rounded(proposed.utilisation), rounded(now.fairness), rounded(proposed.fairness)],
      ...[now.cents, proposed.cents].map((cents) => (cents === null ? null : cents / 100)),
    ],
    ...teams.map((team) => [
      ...[gpuType, team.name, null, null, team.now.guaranteedMilli / 1000, team.proposed.guaranteedMilli / 1000],
      ...[team.now.limitMilli / 1000, team.proposed.limitMilli / 1000],
      ...figures.flatMap((key) => [rounded(team.now[key]), rounded(team.proposed[key])]),
      ...[null, null, null, null, null, null],
    ]),
  ]);
  return csvResponse("what-if.csv", header, rows);
}

function timeAsCsv({ types }: Result): Response {
  return csvResponse(
    "what-if-time.csv",
    ["GPU type", "from", "to", ...both("held GPUs"), ...both("waiting for GPUs")],
    types.flatMap(({ gpuType, bins }) =>
      bins.map(({ from, to, now, proposed }) => [
        ...[gpuType, from, to],
        ...[now.held, proposed.held, now.waiting, proposed.waiting].map(rounded),
      ]),
    ),
  );
}
