/**
 * Measures the files of running workspaces and finds workspaces above their limit. A project quota or a separate file
 * system would enforce the limit, and both need root. So the workspace's page shows a message. Launches go on, because
 * files can only be deleted in a workspace that runs.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { PlaceNews } from "#server/launchers/launcher.ts";
import type { Logger } from "#server/log.ts";
import { formatBytes } from "#server/scheduler/amount.ts";
import { bytesOf } from "./disk-usage.ts";

const PAUSE_MS = 60_000;

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
      const measured = bytesOf(folders, { signal: this.#stopped.signal });
      const bytes = await measured.catch(() => this.#above.get(id) ?? 0);
      if (bytes > this.#limitBytes) above.set(id, bytes);
    }
    this.#above = above;
  }
}
