import { LaunchRefused } from "#server/launchers/launcher.ts";
import { formatBytes } from "#server/scheduler/amount.ts";

/** Memory limits by workspace id, bytes. */
type Limits = ReadonlyMap<string, number>;

/**
 * Keeps the sum of the memory limits of all running workspaces within a maximum. By default that is more than the machine
 * has, because few notebooks use all that they may.
 */
export class MemoryBudget {
  readonly #totalBytes: number;
  readonly #running: () => Promise<Limits>;
  readonly #starting = new Map<string, number>();

  constructor(totalBytes: number, running: () => Promise<Limits>) {
    this.#totalBytes = totalBytes;
    this.#running = running;
  }

  /** Runs `start` with `bytes` set aside for the workspace, or throws `LaunchRefused`. */
  async with<T>(id: string, bytes: number, start: () => Promise<T>): Promise<T> {
    // Read first: a workspace that begins to run meanwhile is in this list.
    const starting = new Map(this.#starting);
    const running = await this.#running();
    const limits = new Map([...running, ...starting, ...this.#starting]);
    limits.delete(id);
    const taken = [...limits.values()].reduce((sum, each) => sum + each, 0);
    if (taken + bytes > this.#totalBytes) {
      throw new LaunchRefused({
        happened: `The running workspaces may use ${formatBytes(taken)} of the ${formatBytes(this.#totalBytes)} of memory for workspaces on this machine, and this one needs ${formatBytes(bytes)}.`,
        next: "Stop another workspace, or choose a smaller size under Settings. An admin can raise SLUICE_LOCAL_MEMORY_GIB.",
      });
    }
    this.#starting.set(id, bytes);
    try {
      return await start();
    } finally {
      this.#starting.delete(id);
    }
  }
}
