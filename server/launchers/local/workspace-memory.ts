/** Memory of a workspace: of its processes and of its files in memory. */
import { closeSync, constants, fstatSync, openSync, statfsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { kibOf, statusOf } from "./process-table.ts";

/** O_PATH of open(2), for which Node has no constant: a descriptor without the right to read. */
const O_PATH = 0o10_000_000;

const MEMORY_FOLDERS = ["/dev/shm", "/tmp"];

/** File systems in memory as the sandbox's first process sees them, by device number. */
export type MemoryFileSystems = Record<string, number>;

/** Call right after the start, before code of the workspace can mount another file system there. */
export function memoryFileSystems(firstPid: number): MemoryFileSystems {
  const found: MemoryFileSystems = {};
  for (const folder of MEMORY_FOLDERS) {
    const device = withFolder(firstPid, folder, (handle) => fstatSync(handle).dev);
    if (device !== undefined) found[folder] = device;
  }
  return found;
}

/** Bytes of files in memory. A folder that is another file system than at the start counts as empty. */
export function bytesInMemoryFiles(firstPid: number, known: MemoryFileSystems): number {
  let sum = 0;
  for (const [folder, device] of Object.entries(known)) {
    sum +=
      withFolder(firstPid, folder, (handle) => {
        if (fstatSync(handle).dev !== device) return 0;
        const { blocks, bfree, bsize } = statfsSync(`/proc/self/fd/${handle}`);
        return (blocks - bfree) * bsize;
      }) ?? 0;
  }
  return sum;
}

/** Opens a folder without following a link; undefined for a missing folder. */
function withFolder<T>(pid: number, folder: string, ask: (handle: number) => T): T | undefined {
  let handle: number | undefined;
  try {
    handle = openSync(`/proc/${pid}/root${folder}`, O_PATH | constants.O_NOFOLLOW | constants.O_DIRECTORY);
    return ask(handle);
  } catch {
    return undefined;
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}

export type ExactMemory = { pid: number; anonymousBytes: number; sharedBytes: number };

/**
 * Memory of one process with shared pages divided among the processes that map them. The kernel walks the page tables:
 * expensive, and therefore asked only near the limit.
 */
export async function exactMemory(pid: number): Promise<ExactMemory> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, "utf8").catch(() => "");
  // The kernel may refuse this file, and never the status. A process that has ended has neither.
  if (text === "") return wholeMemory(pid);
  return {
    pid,
    anonymousBytes: kibOf(text, ["Pss_Anon", "SwapPss"]) * 1024,
    sharedBytes: kibOf(text, ["Pss_Shmem"]) * 1024,
  };
}

/** Memory of one process with all of its shared pages: at least its exact memory. */
function wholeMemory(pid: number): ExactMemory {
  const status = statusOf(pid);
  return {
    pid,
    anonymousBytes: kibOf(status, ["RssAnon", "VmSwap"]) * 1024,
    sharedBytes: kibOf(status, ["RssShmem"]) * 1024,
  };
}

/** Files in memory that are mapped appear among the processes and among the files: the larger sum counts. */
export function totalMemory(processes: readonly ExactMemory[], fileBytes: number): number {
  const anonymous = processes.reduce((sum, one) => sum + one.anonymousBytes, 0);
  const shared = processes.reduce((sum, one) => sum + one.sharedBytes, 0);
  return anonymous + Math.max(shared, fileBytes);
}
