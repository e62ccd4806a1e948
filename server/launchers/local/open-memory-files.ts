/**
 * Files in memory without a name, as memfd_create(2) makes them. A program can fill one without mapping it: the memory is
 * then in no process and in no file system with a size.
 */
import { readFileSync } from "node:fs";
import { readdir, readlink, stat } from "node:fs/promises";
import { kibOf, type Process } from "./process-table.ts";

/** Descriptors that one read follows, of a workspace and of one process: a workspace may open hundreds of thousands. */
const MOST_DESCRIPTORS = 4_096;
const MOST_OF_A_PROCESS = 1_024;

export type OpenMemoryFiles = {
  bytes: number;
  /** Bytes of the files that a process has open; processes may share files. */
  byPid: ReadonlyMap<number, number>;
};

export const NO_MEMORY_FILES: OpenMemoryFiles = { bytes: 0, byPid: new Map() };

/** Bytes of all files in memory on this machine, mapped or not. A small read: it tells when a look is due. */
export function sharedMemoryBytes(): number {
  return kibOf(readFileSync("/proc/meminfo", "utf8"), ["Shmem"]) * 1024;
}

/**
 * Reads the descriptors of these processes. Each file counts once. Of too many, each read takes others, so that none hides
 * behind them for long.
 */
export async function openMemoryFiles(processes: readonly Pick<Process, "pid">[]): Promise<OpenMemoryFiles> {
  const files = new Map<string, number>();
  const byPid = new Map<number, number>();
  let left = MOST_DESCRIPTORS;
  for (const { pid } of fromAnywhere(processes)) {
    const own = new Map<string, number>();
    const descriptors = fromAnywhere(await readdir(`/proc/${pid}/fd`).catch(() => []));
    for (const descriptor of descriptors.slice(0, Math.min(left, MOST_OF_A_PROCESS))) {
      left -= 1;
      const file = await memoryFile(`/proc/${pid}/fd/${descriptor}`);
      if (file !== undefined) own.set(file.inode, file.bytes);
    }
    for (const [inode, bytes] of own) files.set(inode, bytes);
    if (own.size > 0) byPid.set(pid, sumOf(own));
  }
  return { bytes: sumOf(files), byPid };
}

/** A descriptor's file, if it is one in memory without a name; undefined also where it was closed meanwhile. */
async function memoryFile(descriptor: string): Promise<{ inode: string; bytes: number } | undefined> {
  try {
    // A link that a program chose may begin so, too: what counts is the size in memory of what is behind it.
    if (!(await readlink(descriptor)).startsWith("/memfd:")) return undefined;
    const { dev, ino, blocks } = await stat(descriptor);
    return { inode: `${dev}:${ino}`, bytes: blocks * 512 };
  } catch {
    return undefined;
  }
}

/** The same list from a random place on. */
function fromAnywhere<T>(list: readonly T[]): T[] {
  const start = Math.floor(Math.random() * list.length);
  return [...list.slice(start), ...list.slice(0, start)];
}

const sumOf = (files: ReadonlyMap<string, number>) => [...files.values()].reduce((sum, bytes) => sum + bytes, 0);
