/**
 * Keeps one workspace from filling the disk for all. When the space beside the reserve for database and logs runs out,
 * every workspace is paused, and the one that wrote most ends; the others continue. Without the pause, a program that
 * writes a gigabyte within a second would fill the disk, reserve included, before anything is measured.
 */
import { existsSync, readdirSync, statSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Disk, type ReadFileSystem, readDisk } from "#server/disk.ts";
import type { Logger } from "#server/log.ts";
import { formatBytes } from "#server/scheduler/amount.ts";
import { recentBytesOf } from "./disk-usage.ts";
import { writeLimitRecord } from "./limit-record.ts";
import { type Process, readProcessTable, treeOf } from "./process-table.ts";
import { type ProcessStart, signalProcess } from "./processes.ts";

const LOOK_MS = 250;
/** Writing of this age counts. */
const RECENT_MINUTES = 2;
/** Timeout of each measurement; all run at the same time. */
const MEASURE_MS = 15_000;
const MIB = 1024 ** 2;
/** A workspace that wrote less does not end. */
const LEAST_BYTES = 16 * MIB;
/** Rounds of stopping: a program that starts others while it is stopped leaves some for the next round. */
const MOST_ROUNDS = 10;

export type DiskWatched = {
  id: string;
  generation: number;
  first: ProcessStart;
  /** Folders of the workspace on the disk of the state directory. */
  folders: string[];
  /** File of the `LimitRecord`. */
  recordFile: string;
};

export type DiskWatchOptions = {
  stateDir: string;
  running: () => Promise<DiskWatched[]>;
  log: Logger;
  lookMs?: number;
  readFileSystem?: ReadFileSystem | undefined;
};

type Written = { one: DiskWatched; tree: Process[]; bytes: number };

export class DiskWatch {
  readonly #options: DiskWatchOptions;
  readonly #stopped = new AbortController();
  readonly #done: Promise<void>;
  /** Spare bytes after the last measurement: the next one follows only when more is gone. */
  #measuredAt = Number.POSITIVE_INFINITY;

  constructor(options: DiskWatchOptions) {
    this.#options = options;
    this.#done = this.#loop();
  }

  /** Waits for the look under way. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#done;
  }

  async #loop(): Promise<void> {
    const { log, lookMs = LOOK_MS } = this.#options;
    await this.#continueAfterCrash().catch((error: unknown) =>
      log.error({ err: error }, "paused workspaces could not be continued"),
    );
    while (!this.#stopped.signal.aborted) {
      await this.#look().catch((error: unknown) => log.warn({ err: error }, "the disk could not be checked"));
      await sleep(lookMs, undefined, { signal: this.#stopped.signal }).catch(() => undefined);
    }
  }

  async #look(): Promise<void> {
    const { stateDir, readFileSystem } = this.#options;
    const disk = await readDisk(stateDir, readFileSystem);
    if (!isRunningOut(disk)) {
      this.#measuredAt = Number.POSITIVE_INFINITY;
      return;
    }
    if (this.#measuredAt - disk.spareBytes < LEAST_BYTES) return;
    const running = await this.#options.running();
    if (running.length > 0) await this.#endWriter(running);
    this.#measuredAt = (await readDisk(stateDir, readFileSystem)).spareBytes;
  }

  async #endWriter(running: readonly DiskWatched[]): Promise<void> {
    const { log } = this.#options;
    // On a full disk the file may not be written; it only helps after a crash.
    await writeFile(this.#pauseFile, "").catch(() => undefined);
    const paused = pause(running);
    try {
      const written = await Promise.all(running.map(async (one) => await measure(one)));
      const most = written.toSorted((a, b) => b.bytes - a.bytes)[0];
      if (most === undefined || most.bytes < LEAST_BYTES) {
        log.warn("the disk is almost full, and no workspace wrote to it in the last minutes");
        return;
      }
      const { one, bytes } = most;
      log.warn({ workspaceId: one.id, bytes }, "a workspace fills the disk and is ended");
      const { generation, recordFile } = one;
      const record = { generation, at: new Date(), ended: "workspace", sentence: sentenceOf(bytes) } as const;
      await writeLimitRecord(recordFile, record).catch((error: unknown) =>
        log.warn({ err: error, workspaceId: one.id }, "the reason could not be written"),
      );
      for (const { pid } of most.tree) signalProcess(pid, "SIGKILL");
    } finally {
      for (const pid of paused) signalProcess(pid, "SIGCONT");
      await rm(this.#pauseFile, { force: true });
    }
  }

  get #pauseFile(): string {
    return path.join(this.#options.stateDir, "workspaces-paused");
  }

  /** A broker that ended during a pause has left every workspace stopped. */
  async #continueAfterCrash(): Promise<void> {
    if (!existsSync(this.#pauseFile)) return;
    const table = readProcessTable();
    for (const { first } of await this.#options.running())
      for (const { pid } of treeOf(table, first)) signalProcess(pid, "SIGCONT");
    await rm(this.#pauseFile, { force: true });
  }
}

/** Before the reserve is released, which happens at half of its size. */
function isRunningOut({ spareBytes, reserveBytes }: Disk): boolean {
  return spareBytes < reserveBytes;
}

function sentenceOf(bytes: number): string {
  return `The disk of this machine was almost full, and the workspace was ended: it wrote ${formatBytes(bytes)} in the last ${RECENT_MINUTES} minutes, more than any other. Variables of notebooks are gone, files are kept. Start it again once there is space, and write less or delete files.`;
}

/** Stops all processes of the workspaces, and returns those that ran before. */
function pause(running: readonly DiskWatched[]): Set<number> {
  const paused = new Set<number>();
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const table = readProcessTable();
    const more = running
      .flatMap(({ first }) => treeOf(table, first))
      .filter(({ pid, state }) => state !== "T" && state !== "Z" && !paused.has(pid));
    if (more.length === 0) break;
    for (const { pid } of more) {
      signalProcess(pid, "SIGSTOP");
      paused.add(pid);
    }
  }
  return paused;
}

/** What a workspace wrote of late, with files that have no name any more and are still open. */
async function measure(one: DiskWatched): Promise<Written> {
  const tree = treeOf(readProcessTable(), one.first);
  const named = await recentBytesOf(one.folders, RECENT_MINUTES, MEASURE_MS).catch(() => 0);
  return { one, tree, bytes: named + namelessBytes(tree, one.folders) };
}

function namelessBytes(tree: readonly Process[], folders: readonly string[]): number {
  const devices = new Set(folders.flatMap((folder) => statSync(folder, { throwIfNoEntry: false })?.dev ?? []));
  const blocks = new Map<string, number>();
  for (const { pid } of tree) {
    for (const file of openFilesOf(pid)) {
      const found = statSync(file, { throwIfNoEntry: false });
      if (found?.isFile() !== true || found.nlink > 0 || !devices.has(found.dev)) continue;
      blocks.set(`${found.dev}:${found.ino}`, found.blocks);
    }
  }
  return 512 * [...blocks.values()].reduce((sum, each) => sum + each, 0);
}

function openFilesOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((name) => `/proc/${pid}/fd/${name}`);
  } catch {
    // The process has ended, or is not this user's.
    return [];
  }
}
