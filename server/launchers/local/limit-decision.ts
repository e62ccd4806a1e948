/** Decides what ends in a workspace above a limit: its largest program where that suffices, otherwise the workspace. */
import type { Limits } from "./limits.ts";

const MIB = 1024 ** 2;
/** Tolerated share above a limit: the watch looks at intervals, and the kernel counts in batches. */
const TOLERANCE = 0.03;
const SMALLEST_TOLERANCE_BYTES = 16 * MIB;
/** Ended programs within the window below; above the limit of memory once more, the workspace ends. */
const MOST_ENDED_PROCESSES = 5;
export const ENDED_PROCESSES_WINDOW_MS = 60_000;

export type Measured = {
  limits: Pick<Limits, "memoryBytes" | "tasks">;
  memoryBytes: number;
  tasks: number;
  /** Programs that may be ended, each with its own memory; without first process and Jupyter server. */
  programs: { pid: number; memoryBytes: number }[];
  /** Processes that were ended for memory within `ENDED_PROCESSES_WINDOW_MS`. */
  endedProcesses: number;
};

export type Decision =
  | { kind: "keep" }
  | { kind: "end-process"; pid: number; memoryBytes: number }
  | { kind: "end-workspace"; cause: "memory" | "tasks" };

/** Bytes above which a memory limit is enforced. */
export function enforcedFrom(memoryBytes: number): number {
  return memoryBytes + Math.max(SMALLEST_TOLERANCE_BYTES, memoryBytes * TOLERANCE);
}

/** Like the kernel, ends the largest program. Jupyter tells the page of a notebook kernel that ended. */
export function decide({ limits, memoryBytes, tasks, programs, endedProcesses }: Measured): Decision {
  if (tasks > limits.tasks * (1 + TOLERANCE)) return { kind: "end-workspace", cause: "tasks" };
  if (memoryBytes <= enforcedFrom(limits.memoryBytes)) return { kind: "keep" };
  const largest = programs.toSorted((a, b) => b.memoryBytes - a.memoryBytes)[0];
  const excess = memoryBytes - limits.memoryBytes;
  if (largest === undefined || largest.memoryBytes < excess || endedProcesses >= MOST_ENDED_PROCESSES)
    return { kind: "end-workspace", cause: "memory" };
  return { kind: "end-process", ...largest };
}
