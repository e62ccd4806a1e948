/**
 * Limits of a local workspace, derived from its size. A limit of files in memory (`/tmp`, `/dev/shm`) also counts
 * toward the memory limit: a tmpfs has no other place for its pages.
 */
import { availableParallelism } from "node:os";
import { thisMachinesMemory } from "#server/launchers/capacity.ts";
import type { WorkspaceSpec } from "#server/launchers/launcher.ts";

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

type Size = NonNullable<WorkspaceSpec["size"]>;

export type Limits = {
  memoryBytes: number;
  cpuMilli: number;
  /** Processes and their threads together: the kernel limits both as tasks. */
  tasks: number;
  /** Size of `/dev/shm`, a tmpfs. */
  shmBytes: number;
  /** Size of `/tmp`, a tmpfs. */
  tmpBytes: number;
};

const TASKS_PER_GIB = 512;
/** JupyterLab with two kernels and a terminal has about 100 tasks. */
const FEWEST_TASKS = 512;
/** The kernel's default `pid_max` is 32,768: a few workspaces at the limit leave room for the machine. */
const MOST_TASKS = 4096;
const LARGEST_TMP_BYTES = 10 * GIB;
/** Largest `/dev/shm` of a sandbox without a size, as builds have it. */
export const DEFAULT_SHM_BYTES = GIB;

/** Limit of the files on disk (home, packages and `/var/tmp`) of a workspace with `FILES_MEMORY_BYTES` of memory. */
export const DEFAULT_FILES_BYTES = 100 * GIB;
const FILES_MEMORY_BYTES = 4 * GIB;
const MIN_FILES_FACTOR = 1 / 4;
const MAX_FILES_FACTOR = 8;

/** Size of a workspace without one: two cores and 4 GiB, or what the machine has. */
export function defaultSize(): Size {
  return {
    cpuMilli: Math.min(2, availableParallelism()) * 1000,
    memoryBytes: Math.min(4 * GIB, thisMachinesMemory()),
  };
}

/** `/dev/shm` gets half of the memory and `/tmp` a quarter, so that files alone never fill the memory limit. */
export function limitsOf({ cpuMilli, memoryBytes }: Size): Limits {
  const tasks = Math.round((memoryBytes / GIB) * TASKS_PER_GIB);
  return {
    memoryBytes,
    cpuMilli,
    tasks: Math.min(MOST_TASKS, Math.max(FEWEST_TASKS, tasks)),
    shmBytes: wholeMib(memoryBytes / 2),
    tmpBytes: Math.min(LARGEST_TMP_BYTES, wholeMib(memoryBytes / 4)),
  };
}

/** Limit of a workspace's files: `filesBytes` in proportion to the memory, at least a quarter, at most eight times. */
export function filesLimitOf(memoryBytes: number, filesBytes: number): number {
  const factor = Math.min(MAX_FILES_FACTOR, Math.max(MIN_FILES_FACTOR, memoryBytes / FILES_MEMORY_BYTES));
  return wholeMib(filesBytes * factor);
}

function wholeMib(bytes: number): number {
  return Math.max(1, Math.floor(bytes / MIB)) * MIB;
}
