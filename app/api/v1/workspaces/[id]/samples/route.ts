import { sampleRows } from "#server/contracts/sample-rows.ts";
import { type WorkspaceSamples, workspaceSamples, workspaceSamplesInput } from "#server/contracts/workspace.ts";
import { csvResponse } from "#server/http/csv.ts";
import { route } from "#server/http/route.ts";
import { samples } from "#server/services/workspace/samples.ts";

export const GET = route(
  {
    method: "GET",
    path: "/workspaces/{id}/samples",
    summary: "Processor time, memory and GPUs of a workspace over time",
    action: "workspace.read",
    input: workspaceSamplesInput,
    output: workspaceSamples,
    csv: true,
  },
  async (ctx, input) => {
    const answer = await samples(ctx, input);
    return input.format === "csv" ? asCsv(input.id, answer) : answer;
  },
);

const whole = (milli: number | undefined) => (milli === undefined ? null : milli / 1000);

/** A line for each stretch; what was not measured in it is empty. */
function asCsv(id: string, answer: WorkspaceSamples): Response {
  return csvResponse(
    `${id}-${answer.from.slice(0, 16)}-${answer.to.slice(0, 16)}.csv`,
    ["from", "CPU cores", "memory bytes", "GPUs held", "GPU time, GPUs", "GPU memory bytes"],
    sampleRows(answer).map(({ at, processes, gpu }) => [
      ...[at, whole(processes?.cpuMilli), processes?.memoryBytes ?? null],
      ...[whole(gpu?.heldMilli), whole(gpu?.usedMilli), gpu?.memoryBytes ?? null],
    ]),
  );
}
