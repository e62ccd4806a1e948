import { type Utilisation, type UtilisationRow, utilisation, utilisationInput } from "#server/contracts/utilisation.ts";
import { csvResponse } from "#server/http/csv.ts";
import { route } from "#server/http/route.ts";
import { read } from "#server/services/utilisation/read.ts";

export const GET = route(
  {
    method: "GET",
    path: "/utilisation",
    summary: "GPU time in the pool, by state and by team",
    action: "utilisation.read",
    input: utilisationInput,
    output: utilisation,
    csv: true,
  },
  async (ctx, input) => {
    const answer = await read(ctx, input);
    if (input.format === "csv-time") return timeAsCsv(answer);
    return input.format === "csv" ? asCsv(answer, input.by) : answer;
  },
);

const hours = (value: number) => Math.round(value * 1e4) / 1e4;
/** What is not known is no number. */
const known = (value: number | null) => (value === null ? null : hours(value));

function asCsv(answer: Utilisation, by: string): Response {
  // A person and a workspace are of a team; a team and a GPU type are of none.
  const isOfTeam = by === "person" || by === "workspace";
  return csvResponse(
    `usage-${by}-${answer.from.slice(0, 10)}-${answer.to.slice(0, 10)}.csv`,
    [
      ...[
        by,
        "id",
        ...(isOfTeam ? ["team"] : []),
        "used GPU-hours",
        "held idle GPU-hours",
        "borrowed GPU-hours",
        "lent GPU-hours",
        "grants",
      ],
      ...["median wait s", "95 % wait s", "promised GPU-hours", "delivered GPU-hours"],
      ...EFFECTIVE_COLUMNS,
    ],
    answer.rows.map((row) => [
      ...[
        row.name,
        row.id,
        ...(isOfTeam ? [row.within] : []),
        hours(row.used),
        hours(row.heldIdle),
        hours(row.borrowed),
      ],
      ...[known(row.lent), row.grants, row.waitMedian, row.waitP95],
      ...[hours(row.promised), hours(row.delivered), ...effective(row)],
    ]),
  );
}

const EFFECTIVE_COLUMNS = ["effective", "effective known of used", "effective estimated"].map(
  (name) => `${name} GPU-hours`,
);
const effective = (row: Pick<UtilisationRow, "effective" | "effectiveKnown" | "effectiveEstimated">) => [
  known(row.effective),
  hours(row.effectiveKnown),
  hours(row.effectiveEstimated),
];

const TIME_COLUMNS = ["used", "held idle", "free", "draining", "lost", "borrowed", "stranded"];

function timeAsCsv(answer: Utilisation): Response {
  return csvResponse(
    `usage-${answer.from.slice(0, 10)}-${answer.to.slice(0, 10)}.csv`,
    ["from", "to", ...TIME_COLUMNS.map((name) => `${name} GPU-hours`), ...EFFECTIVE_COLUMNS],
    answer.bins.map((bin) => [
      ...[bin.from, bin.to],
      ...[bin.used, bin.heldIdle, bin.free, bin.draining, bin.lost, bin.borrowed, bin.stranded].map(hours),
      ...effective(bin),
    ]),
  );
}
