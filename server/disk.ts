/**
 * Space on the disk of the state directory. A reserve, `<state>/reserve`, keeps space for database and logs:
 * scripts/lib/reserve.ts makes and releases the file, and the local launcher refuses launches while space is short.
 */
import { stat, statfs } from "node:fs/promises";
import path from "node:path";

const MIB = 1024 ** 2;
const LARGEST_RESERVE_BYTES = 256 * MIB;
/** Part of a small disk that the reserve takes. */
const RESERVE_PART = 0.05;

/** Sizes are bytes. */
export type Disk = {
  /** Free for a process without privileges. */
  availableBytes: number;
  /** Intended size of the reserve. */
  reserveBytes: number;
  /** Size of the reserve now; 0 while the reserve is released. */
  heldBytes: number;
  /** Free beside the whole reserve, held or released; negative once database and logs use the reserve. */
  spareBytes: number;
  /** The remaining space belongs to database and logs, so no workspace starts. */
  isShort: boolean;
};

export type FileSystem = { availableBytes: number; totalBytes: number };
export type ReadFileSystem = (folder: string) => Promise<FileSystem>;

export function reserveFile(stateDir: string): string {
  return path.join(stateDir, "reserve");
}

/** Reads the state of the disk that holds the state directory. */
export async function readDisk(stateDir: string, readFileSystem: ReadFileSystem = fileSystemOf): Promise<Disk> {
  const held = await stat(reserveFile(stateDir)).catch(() => undefined);
  return diskOf(await readFileSystem(stateDir), held?.size ?? 0);
}

/** Space is short when less than half of the reserve's size is free beside the reserve. */
export function diskOf({ availableBytes, totalBytes }: FileSystem, heldBytes: number): Disk {
  const reserveBytes = Math.min(LARGEST_RESERVE_BYTES, Math.ceil((totalBytes * RESERVE_PART) / MIB) * MIB);
  const spareBytes = availableBytes - Math.max(0, reserveBytes - heldBytes);
  return { availableBytes, reserveBytes, heldBytes, spareBytes, isShort: spareBytes < reserveBytes / 2 };
}

async function fileSystemOf(folder: string): Promise<FileSystem> {
  const { bavail, blocks, bsize } = await statfs(folder);
  return { availableBytes: bavail * bsize, totalBytes: blocks * bsize };
}
