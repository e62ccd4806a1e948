/**
 * Keeps one workspace from filling the disk for all. When the space beside the reserve for database and logs runs out,
 * every workspace is paused, and the one that wrote most ends; the others continue. Without the pause, a program that
 * writes a gigabyte within a second would fill the disk, reserve included, before anything is measured.
 */
import { existsSync } from "node:fs";
import { readdir, rm, stat, writeFile } from "node:fs/promises";
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
/** Limit of a pause. A measurement that is not done by then counts with what it has found. */
const MEASURE_MS = 3_000;
/** Least time between two pauses: a workspace that writes and deletes in turn pauses nobody for long. */
const PAUSE_EVERY_MS = 10_000;
/** Open files of a workspace that are looked at. */
const MOST_OPEN_FILES = 4_000;
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
  #pausedAt = Number.NEGATIVE_INFINITY;

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
    const { spareBytes, reserveBytes } = disk;
    if (spareBytes > 2 * reserveBytes) this.#measuredAt = Number.POSITIVE_INFINITY;
    if (!isRunningOut(disk) || this.#measuredAt - spareBytes < LEAST_BYTES) return;
    if (performance.now() - this.#pausedAt < PAUSE_EVERY_MS) return;
    const running = await this.#options.running();
    if (running.length > 0) await this.#endWriter(running);
    this.#pausedAt = performance.now();
    this.#measuredAt = (await readDisk(stateDir, readFileSystem)).spareBytes;
  }

  async #endWriter(running: readonly DiskWatched[]): Promise<void> {
    const { log } = this.#options;
    // On a full disk the file may not be written; it only helps after a crash.
    await writeFile(this.#pauseFile, "").catch(() => undefined);
    const paused = pause(running);
    try {
      const limit = AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(MEASURE_MS)]);
      const written = await Promise.all(running.map(async (one) => await measure(one, limit)));
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
  return `The disk of this machine was almost full, and this workspace was ended. It wrote ${formatBytes(bytes)} in the last ${RECENT_MINUTES} minutes, more than any other. Variables of notebooks are gone, files are kept. Start it again once there is space, and write less or delete files.`;
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
async function measure(one: DiskWatched, limit: AbortSignal): Promise<Written> {
  const tree = treeOf(readProcessTable(), one.first);
  const [named, nameless] = await Promise.all([
    recentBytesOf(one.folders, RECENT_MINUTES, limit).catch(() => 0),
    namelessBytes(tree, one.folders, limit),
  ]);
  return { one, tree, bytes: named + nameless };
}

async function namelessBytes(tree: readonly Process[], folders: readonly string[], limit: AbortSignal) {
  const found = await Promise.all(folders.map(async (folder) => await stat(folder).catch(() => undefined)));
  const devices = new Set(found.flatMap((each) => each?.dev ?? []));
  const blocks = new Map<string, number>();
  let looked = 0;
  for (const { pid } of tree) {
    // The process has ended, or is not this user's.
    const names = await readdir(`/proc/${pid}/fd`).catch(() => []);
    for (const name of names) {
      if (limit.aborted || looked++ >= MOST_OPEN_FILES) return sumOf(blocks);
      const file = await stat(`/proc/${pid}/fd/${name}`).catch(() => undefined);
      if (file?.isFile() !== true || file.nlink > 0 || !devices.has(file.dev)) continue;
      blocks.set(`${file.dev}:${file.ino}`, file.blocks);
    }
  }
  return sumOf(blocks);
}

function sumOf(blocks: ReadonlyMap<string, number>): number {
  return 512 * [...blocks.values()].reduce((sum, each) => sum + each, 0);
}
