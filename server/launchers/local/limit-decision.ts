/** Decides what a workspace above a limit loses: one process where that suffices, otherwise everything. */
import type { Limits } from "./limits.ts";

const MIB = 1024 ** 2;
/** Time between two looks lets a workspace pass its limit for a moment, and the kernel counts in batches. */
const TOLERANCE = 0.03;
const SMALLEST_TOLERANCE_BYTES = 16 * MIB;
/** A program that is started again each time it is ended ends the workspace. */
const MOST_ENDED_PROCESSES = 5;
export const ENDED_PROCESSES_WINDOW_MS = 60_000;

export type Measured = {
  limits: Pick<Limits, "memoryBytes" | "tasks">;
  memoryBytes: number;
  tasks: number;
  /** Candidates with what each has alone, first process and Jupyter server excluded. */
  programs: { pid: number; memoryBytes: number }[];
  /** Processes that were ended for memory within `ENDED_PROCESSES_WINDOW_MS`. */
  endedProcesses: number;
};

export type Decision =
  | { kind: "keep" }
  | { kind: "end-process"; pid: number; memoryBytes: number }
  | { kind: "end-workspace"; cause: "memory" | "tasks" };

/** Memory from which on a limit is enforced. */
export function enforcedFrom(memoryBytes: number): number {
  return memoryBytes + Math.max(SMALLEST_TOLERANCE_BYTES, memoryBytes * TOLERANCE);
}

/** Ending the largest program is what the kernel does, too: a notebook kernel ends, and Jupyter tells its page. */
export function decide({ limits, memoryBytes, tasks, programs, endedProcesses }: Measured): Decision {
  if (tasks > limits.tasks * (1 + TOLERANCE)) return { kind: "end-workspace", cause: "tasks" };
  if (memoryBytes <= enforcedFrom(limits.memoryBytes)) return { kind: "keep" };
  const largest = programs.toSorted((a, b) => b.memoryBytes - a.memoryBytes)[0];
  const excess = memoryBytes - limits.memoryBytes;
  if (largest === undefined || largest.memoryBytes < excess || endedProcesses >= MOST_ENDED_PROCESSES)
    return { kind: "end-workspace", cause: "memory" };
  return { kind: "end-process", ...largest };
}
