/**
 * Measures the files of running workspaces and finds workspaces above their limit. A project quota or a separate file
 * system would enforce the limit, and both need root. So the workspace's page shows a message. Launches go on, because
 * files can only be deleted in a workspace that runs.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { PlaceNews } from "#server/launchers/launcher.ts";
import type { Logger } from "#server/log.ts";
import { formatBytes } from "#server/scheduler/amount.ts";
import { runLines } from "./processes.ts";

const PAUSE_MS = 60_000;
/** A measurement that takes longer is given up: the workspace has millions of files, and the disk serves others. */
const MEASURE_MS = 60_000;

export type WatchedFiles = { id: string; folders: string[] };

export class FilesWatch {
  readonly #running: () => Promise<WatchedFiles[]>;
  readonly #limitBytes: number;
  readonly #log: Logger;
  readonly #stopped = new AbortController();
  readonly #done: Promise<void>;
  #above = new Map<string, number>();

  constructor(running: () => Promise<WatchedFiles[]>, limitBytes: number, log: Logger) {
    this.#running = running;
    this.#limitBytes = limitBytes;
    this.#log = log;
    this.#done = this.#loop();
  }

  /** The message for the page of a workspace above its limit. */
  newsOf(id: string): PlaceNews | undefined {
    const bytes = this.#above.get(id);
    if (bytes === undefined) return undefined;
    return {
      sentence: `The files of this workspace take ${formatBytes(bytes)}; the limit is ${formatBytes(this.#limitBytes)}. Delete files in the home and in /var/tmp, or ask an admin for a higher limit.`,
    };
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#done;
  }

  async #loop(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      await this.#look().catch((error: unknown) => this.#log.warn({ err: error }, "files could not be measured"));
      await sleep(PAUSE_MS, undefined, { signal: this.#stopped.signal }).catch(() => undefined);
    }
  }

  /** One workspace after another, so that the disk has one reader. */
  async #look(): Promise<void> {
    const above = new Map<string, number>();
    for (const { id, folders } of await this.#running()) {
      const signal = AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(MEASURE_MS)]);
      const bytes = await bytesOf(folders, signal).catch(() => this.#above.get(id) ?? 0);
      if (bytes > this.#limitBytes) above.set(id, bytes);
    }
    this.#above = above;
  }
}

/** Disk space of folders. Links are not followed, and other file systems are left out. */
export async function bytesOf(folders: readonly string[], signal: AbortSignal): Promise<number> {
  // Files come and go meanwhile, and folders without read permission count as empty: du then ends with an error.
  // `timeout` stands for the signal as well, which ends the shell alone.
  const measure = `timeout -s KILL ${MEASURE_MS / 1000} nice -n 19 du --summarize --block-size=1024 --one-file-system -- "$@" 2>/dev/null || true`;
  const lines = await runLines("sh", ["-c", measure, "du", ...folders], { signal, killSignal: "SIGKILL" });
  return lines.reduce((sum, line) => sum + Number.parseInt(line, 10) * 1024, 0);
}
