import type { WorkspaceSamples } from "./workspace.ts";

export type SampleRow = {
  at: string;
  processes?: WorkspaceSamples["samples"][number];
  gpu?: WorkspaceSamples["gpu"][number];
};

/** What was measured of a workspace, a row for each stretch, oldest first; processes and GPUs each where they were. Pure. */
export function sampleRows({ samples, gpu }: Pick<WorkspaceSamples, "samples" | "gpu">): SampleRow[] {
  const rows = new Map<string, SampleRow>();
  for (const processes of samples) rows.set(processes.at, { at: processes.at, processes });
  for (const each of gpu) rows.set(each.at, { ...rows.get(each.at), at: each.at, gpu: each });
  return [...rows.values()].sort((a, b) => a.at.localeCompare(b.at));
}
