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

type Above = { bytes: number; limitBytes: number };

export type WatchedFiles = { id: string; folders: string[]; limitBytes: number };

export class FilesWatch {
  readonly #running: () => Promise<WatchedFiles[]>;
  readonly #log: Logger;
  readonly #stopped = new AbortController();
  readonly #done: Promise<void>;
  /** Workspaces above their limit. */
  #above = new Map<string, Above>();

  constructor(running: () => Promise<WatchedFiles[]>, log: Logger) {
    this.#running = running;
    this.#log = log;
    this.#done = this.#loop();
  }

  /** The message for the page of a workspace above its limit. */
  newsOf(id: string): PlaceNews | undefined {
    const above = this.#above.get(id);
    if (above === undefined) return undefined;
    const { bytes, limitBytes } = above;
    return {
      sentence: `The files of this workspace take ${formatBytes(bytes)}; the limit is ${formatBytes(limitBytes)}. Delete files in the home and in /var/tmp. A size with more memory can have a higher limit; an admin can raise the limit.`,
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
    const above = new Map<string, Above>();
    for (const { id, folders, limitBytes } of await this.#running()) {
      const measured = bytesOf(folders, { signal: this.#stopped.signal });
      const bytes = await measured.catch(() => this.#above.get(id)?.bytes ?? 0);
      if (bytes > limitBytes) above.set(id, { bytes, limitBytes });
    }
    this.#above = above;
  }
}
