/**
 * Enforces memory and task limits of workspaces without control groups. Each look walks /proc once for all workspaces.
 * The exact measurement is expensive, and follows only above a limit.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "#server/log.ts";
import { type Decision, decide, ENDED_PROCESSES_WINDOW_MS, enforcedFrom } from "./limit-decision.ts";
import { recordOf, writeLimitRecord } from "./limit-record.ts";
import type { Limits } from "./limits.ts";
import { NO_MEMORY_FILES, type OpenMemoryFiles, openMemoryFiles, sharedMemoryBytes } from "./open-memory-files.ts";
import { chargedBytes, type Process, readProcessTable, treeOf } from "./process-table.ts";
import { isAlive, type ProcessStart, signalProcess } from "./processes.ts";
import {
  bytesInMemoryFiles,
  type ExactMemory,
  exactMemory,
  type MemoryFileSystems,
  totalMemory,
} from "./workspace-memory.ts";

const LOOK_MS = 1_000;
/** A program allocates a gigabyte within a second: near the limit the watch looks more often. */
const NEAR_LOOK_MS = 250;
const NEAR = 0.8;
/** Interval of exact measurements: programs that share pages stay above the limit by the cheap sum. */
const EXACT_EVERY_MS = 5_000;
/** Growth of the machine's shared memory after which the descriptors of all workspaces are read. */
const UNSEEN_BYTES = 32 * 1024 ** 2;
/** Interval at which they are read without such growth: what one program frees hides what another takes. */
const DESCRIPTORS_EVERY_MS = 10_000;

/** A running workspace as the watch needs it. */
export type Watched = {
  id: string;
  generation: number;
  first: ProcessStart;
  isolated: boolean;
  limits: Pick<Limits, "memoryBytes" | "tasks">;
  memoryFileSystems: MemoryFileSystems;
  /** File of the `LimitRecord`. */
  recordFile: string;
};

/** From the exact measurement: bytes left, and the cheap sum at that time. */
type Spare = { at: number; leftBytes: number; cheapBytes: number };

export class LimitWatch {
  readonly #running: () => Promise<Watched[]>;
  readonly #log: Logger;
  readonly #spare = new Map<string, Spare>();
  readonly #ended = new Map<string, number[]>();
  readonly #stopped = new AbortController();
  readonly #memoryFiles = new Map<string, OpenMemoryFiles>();
  /** The machine's shared memory when descriptors were last read, or less; and the time. */
  #sharedBytes = 0;
  #descriptorsReadAt = Number.NEGATIVE_INFINITY;
  #isNear = false;
  readonly #done: Promise<void>;

  constructor(running: () => Promise<Watched[]>, log: Logger) {
    this.#running = running;
    this.#log = log;
    this.#done = this.#loop();
  }

  /** Waits for the look under way. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#done;
  }

  async #loop(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      await this.#look().catch((error: unknown) => this.#log.warn({ err: error }, "limits could not be checked"));
      const pause = this.#isNear ? NEAR_LOOK_MS : LOOK_MS;
      await sleep(pause, undefined, { signal: this.#stopped.signal }).catch(() => undefined);
    }
  }

  async #look(): Promise<void> {
    this.#isNear = false;
    const watched = await this.#running();
    this.#forgetOthers(watched);
    if (watched.length === 0) return;
    const table = readProcessTable();
    const isDescriptorReadDue = this.#isDescriptorReadDue();
    for (const one of watched) {
      const tree = treeOf(table, one.first);
      if (tree.length === 0) continue;
      await this.#check(one, tree, isDescriptorReadDue).catch((error: unknown) =>
        this.#log.warn({ err: error, workspaceId: one.id }, "limits of a workspace could not be checked"),
      );
    }
  }

  /** Whether so much shared memory is new that an unnamed file may hold it, or the interval is over. */
  #isDescriptorReadDue(): boolean {
    const [bytes, now] = [sharedMemoryBytes(), performance.now()];
    const isDue = bytes - this.#sharedBytes > UNSEEN_BYTES || now - this.#descriptorsReadAt >= DESCRIPTORS_EVERY_MS;
    if (isDue || bytes < this.#sharedBytes) this.#sharedBytes = bytes;
    if (isDue) this.#descriptorsReadAt = now;
    return isDue;
  }

  /** Reads a workspace's descriptors for files in memory without a name, and remembers the sum for the looks between. */
  async #readMemoryFiles(id: string, tree: Process[]): Promise<OpenMemoryFiles> {
    const found = await openMemoryFiles(tree);
    this.#memoryFiles.set(id, found);
    return found;
  }

  async #check(one: Watched, tree: Process[], isDescriptorReadDue: boolean): Promise<void> {
    const { limits } = one;
    const tasks = tree.reduce((sum, each) => sum + each.threads, 0);
    const known = isDescriptorReadDue
      ? await this.#readMemoryFiles(one.id, tree)
      : (this.#memoryFiles.get(one.id) ?? NO_MEMORY_FILES);
    const namedBytes = bytesInMemoryFiles(one.first.pid, one.memoryFileSystems);
    const cheapBytes = namedBytes + known.bytes + tree.reduce((sum, each) => sum + chargedBytes(each.pid), 0);
    if (cheapBytes > NEAR * limits.memoryBytes || tasks > NEAR * limits.tasks) this.#isNear = true;
    const now = performance.now();
    const endedProcesses = this.#endedSince(one.id, now - ENDED_PROCESSES_WINDOW_MS);
    const measured = { limits, tasks, endedProcesses };
    const cheap = decide({ ...measured, memoryBytes: cheapBytes, programs: [] });
    if (cheap.kind === "keep" || (cheap.kind === "end-workspace" && cheap.cause === "tasks"))
      return await this.#carryOut(one, tree, cheap);
    const spare = this.#spare.get(one.id);
    if (spare && now - spare.at < EXACT_EVERY_MS && cheapBytes - spare.cheapBytes < spare.leftBytes) return;
    // What a program held that has ended since is free.
    const unnamed = known.bytes > 0 ? await this.#readMemoryFiles(one.id, tree) : known;
    const exact = await exactOf(tree);
    const memoryBytes = totalMemory(exact, namedBytes + unnamed.bytes);
    this.#spare.set(one.id, { at: now, cheapBytes, leftBytes: enforcedFrom(limits.memoryBytes) - memoryBytes });
    const essential = essentialOf(tree, one.isolated);
    const programs = exact
      .filter(({ pid }) => !essential.has(pid))
      .map(({ pid, anonymousBytes, sharedBytes }) => ({
        pid,
        // A mapped file counts twice here, where the sum only ranks programs.
        memoryBytes: anonymousBytes + sharedBytes + (unnamed.byPid.get(pid) ?? 0),
      }));
    await this.#carryOut(one, tree, decide({ ...measured, memoryBytes, programs }));
  }

  /** Writes the reason before the end, so that every observer of the end finds the reason. */
  async #carryOut(one: Watched, tree: Process[], decision: Decision): Promise<void> {
    if (decision.kind === "keep") return;
    const { id: workspaceId, generation, limits, first, isolated, recordFile } = one;
    this.#log.warn({ workspaceId, decision }, "a workspace is above its limits");
    await writeLimitRecord(recordFile, recordOf(decision, { generation, at: new Date(), limits }));
    if (decision.kind === "end-process") {
      this.#ended.set(workspaceId, [...(this.#ended.get(workspaceId) ?? []), performance.now()]);
      const ended = tree.find(({ pid }) => pid === decision.pid);
      if (ended !== undefined) await kill(ended);
      return;
    }
    // The end of a namespace's first process ends all others.
    for (const each of isolated ? [first] : tree) await kill(each);
  }

  #endedSince(id: string, since: number): number {
    const recent = (this.#ended.get(id) ?? []).filter((at) => at >= since);
    this.#ended.set(id, recent);
    return recent.length;
  }

  #forgetOthers(watched: readonly Watched[]): void {
    const ids = new Set(watched.map(({ id }) => id));
    for (const kept of [this.#spare, this.#ended, this.#memoryFiles])
      for (const id of kept.keys()) if (!ids.has(id)) kept.delete(id);
  }
}

async function exactOf(tree: readonly Process[]): Promise<ExactMemory[]> {
  const exact: ExactMemory[] = [];
  // One after another: the walk of a large process holds a thread of the pool.
  for (const { pid } of tree) exact.push(await exactMemory(pid));
  return exact;
}

/**
 * The first process, the loop of the forwarder and the Jupyter server, in the order of init.sh. Later children of the
 * first process are programs that outlived their parent.
 */
function essentialOf(tree: readonly Process[], isolated: boolean): Set<number> {
  const [first] = tree;
  const direct = tree.filter(({ parent }) => parent === first?.pid);
  direct.sort((a, b) => a.startTime - b.startTime || a.pid - b.pid);
  return new Set([first, ...direct.slice(0, isolated ? 2 : 1)].flatMap((one) => (one === undefined ? [] : [one.pid])));
}

async function kill(start: ProcessStart): Promise<void> {
  if (await isAlive(start)) signalProcess(start.pid, "SIGKILL");
}
