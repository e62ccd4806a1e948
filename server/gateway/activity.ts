/** Minimum interval between writes of a workspace's last activity, precise enough for idle limits. */
const PAUSE_MS = 60_000;

export class Activity {
  readonly #write: (workspaceId: string, at: Date) => Promise<unknown>;
  /** Written within the last minute, with the timer that forgets it. */
  readonly #recent = new Map<string, NodeJS.Timeout>();

  constructor(write: (workspaceId: string, at: Date) => Promise<unknown>) {
    this.#write = write;
  }

  /** Number of workspaces written within the last minute. */
  get size(): number {
    return this.#recent.size;
  }

  record(workspaceId: string): void {
    if (this.#recent.has(workspaceId)) return;
    this.#recent.set(workspaceId, setTimeout(() => this.#forget(workspaceId), PAUSE_MS).unref());
    // The next request tries again.
    this.#write(workspaceId, new Date()).catch(() => this.#forget(workspaceId));
  }

  close(): void {
    for (const workspaceId of this.#recent.keys()) this.#forget(workspaceId);
  }

  #forget(workspaceId: string): void {
    clearTimeout(this.#recent.get(workspaceId));
    this.#recent.delete(workspaceId);
  }
}
