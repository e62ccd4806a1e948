/** The reserve of disk for database and logs (server/disk.ts): made, released while space is short, and made again. */
import { randomBytes } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { attempt, run } from "#scripts/lib/processes.ts";
import { startRounds } from "#server/broker/rounds.ts";
import { type Disk, type ReadFileSystem, readDisk, reserveFile } from "#server/disk.ts";
import { formatBytes } from "#server/scheduler/amount.ts";

/** A writer of 250 MiB/s does not fill the last half of the reserve's size between two looks. */
const LOOK_MS = 500;
/** Pause after a reserve that could not be made. */
const AGAIN_MS = 60_000;
const CHUNK_BYTES = 1024 ** 2;

export type Reserve = { stop: () => Promise<void> };

export type ReserveOptions = {
  /** Prints a line for a person. */
  say: (line: string) => void;
  lookMs?: number;
  readFileSystem?: ReadFileSystem;
};

/** Keeps the reserve of this state directory. Returns after the first look, so that a start on a full disk has space. */
export async function keepReserve(stateDir: string, options: ReserveOptions): Promise<Reserve> {
  const { say, lookMs = LOOK_MS, readFileSystem } = options;
  const file = reserveFile(stateDir);
  let wasShort = false;
  let notBefore = Number.NEGATIVE_INFINITY;
  const look = async (): Promise<void> => {
    const disk = await readDisk(stateDir, readFileSystem);
    if (disk.isShort && disk.heldBytes > 0) await rm(file, { force: true });
    if (disk.isShort !== wasShort) say(disk.isShort ? shortage(stateDir, disk) : relief(stateDir));
    wasShort = disk.isShort;
    const hasRoom = disk.heldBytes < disk.reserveBytes && disk.spareBytes >= disk.reserveBytes;
    if (hasRoom && performance.now() >= notBefore) {
      notBefore = performance.now() + AGAIN_MS;
      await make(file, disk.reserveBytes);
      notBefore = Number.NEGATIVE_INFINITY;
    }
  };
  let told: string | undefined;
  const tryLook = async (): Promise<void> => {
    const failure = await attempt(look);
    if (failure !== undefined && failure !== told) say(`The reserve of disk in ${stateDir} cannot be kept: ${failure}`);
    told = failure;
  };
  await tryLook();
  return { stop: startRounds(lookMs, tryLook).stop };
}

function shortage(stateDir: string, { availableBytes, reserveBytes }: Disk): string {
  const [left, reserve] = [formatBytes(availableBytes), formatBytes(reserveBytes)];
  return `The disk of ${stateDir} is almost full: ${left} left. The reserve of ${reserve} is released for database and logs, and no workspace starts. Delete unneeded files, or enlarge the disk.`;
}

function relief(stateDir: string): string {
  return `The disk of ${stateDir} has space again, and workspaces start.`;
}

/** Random bytes where the file system cannot allocate: one that compresses zeros would keep no space. */
async function make(file: string, bytes: number): Promise<void> {
  const unfinished = `${file}.new`;
  try {
    await rm(unfinished, { force: true });
    const failure = await attempt(async () => await run("fallocate", ["--length", String(bytes), unfinished]));
    if (failure !== undefined) await fill(unfinished, bytes);
    await rename(unfinished, file);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
}

async function fill(file: string, bytes: number): Promise<void> {
  const chunk = randomBytes(CHUNK_BYTES);
  const handle = await open(file, "w", 0o600);
  try {
    for (let written = 0; written < bytes; written += chunk.length) await handle.writeFile(chunk);
  } finally {
    await handle.close();
  }
}
