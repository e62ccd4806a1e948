/**
 * Files in memory without a name, as memfd_create(2) makes them. A program can fill one without mapping it: the memory is
 * then in no process and in no file system with a size.
 */
import { readFileSync } from "node:fs";
import { readdir, readlink, stat } from "node:fs/promises";
import { kibOf, type Process } from "./process-table.ts";

/** Descriptors that one look follows: a workspace may open hundreds of thousands. */
const MOST_DESCRIPTORS = 16_384;

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

/** Reads the descriptors of these processes. Each file counts once. */
export async function openMemoryFiles(processes: readonly Pick<Process, "pid">[]): Promise<OpenMemoryFiles> {
  const files = new Map<string, number>();
  const byPid = new Map<number, number>();
  let left = MOST_DESCRIPTORS;
  for (const { pid } of processes) {
    const own = new Map<string, number>();
    for (const descriptor of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
      left -= 1;
      if (left < 0) break;
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

const sumOf = (files: ReadonlyMap<string, number>) => [...files.values()].reduce((sum, bytes) => sum + bytes, 0);
