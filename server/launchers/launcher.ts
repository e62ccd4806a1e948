/**
 * What the reconciler asks of whatever runs workspaces. Every operation is idempotent, and none decides policy:
 * who may launch what, and when a workspace ends, is decided before a launcher is asked.
 */

import type { DatasetSource } from "#server/contracts/dataset.ts";
import type { Logger } from "#server/log.ts";

/** The steps of a start that a launcher takes part in, in the order in which people see them. */
export type LaunchStep = "environment" | "sandbox" | "pod" | "jupyter";

/** Where a launcher tells what it does; lines are for people and never hold a secret. */
export type LaunchReport = {
  started: (step: LaunchStep, message: string) => void;
  done: (step: LaunchStep, message: string) => void;
  log: (step: LaunchStep, line: string) => void;
};

/** A dataset as a workspace mounts it, at `~/datasets/<name>`. */
export type DatasetMount = {
  id: string;
  name: string;
  /** Whose it is, by the team's name; undefined: everybody's. */
  team: string | undefined;
  source: DatasetSource;
  writable: boolean;
  /** Shall be read into the node's cache. */
  prefetch: boolean;
};

/** How far a dataset is in a node's cache. */
export type Prefetched = {
  /** `missing`: there are no files, so that nothing is mounted either. */
  state: "reading" | "done" | "partly" | "failed" | "missing";
  bytes: number;
  /** null while it is counted. */
  totalBytes: number | null;
  /** A sentence for a person when it is not all there. */
  message: string | null;
};

export type WorkspaceSpec = {
  id: string;
  teamId: string;
  /** Raised by each start; a running server of another generation is replaced. */
  generation: number;
  /** The environment's stable word, e.g. `cuda-python`, or that of a definition that was locked here. */
  environment: string;
  /** Of what was locked here, so that its definition can be laid again where it is lost. */
  definition?: { word: string; lock: string; base: string; spec: unknown };
  /** An image by its digest, where somebody has proposed one. */
  image?: string;
  /** What it may use of processor and memory; undefined: what the launcher gives to all. `name`: of the size that is offered. */
  size?: { name?: string; cpuMilli: number; memoryBytes: number };
  /** The Jupyter server's own token. */
  serverToken: string;
  /** What the workspace shows to the lease API. */
  credential: string;
  /** The GPU type whose profile a process shows before anything is attached. */
  gpuType: string;
  brokerUrl: string;
  portalUrl: string;
  /** The workspace's address in the browser, e.g. `http://ws-….localhost:3002`. */
  publicUrl: string;
  /** What the owner has set for its processes; secrets are among them. */
  variables: Record<string, string>;
  datasets: DatasetMount[];
  /** Run even where this launcher cannot isolate workspaces from one another and from the installation. */
  allowUnisolated: boolean;
};

/** What is known of a workspace that another broker has begun to start. */
export type BegunWorkspace = Pick<WorkspaceSpec, "id" | "teamId" | "generation" | "datasets">;

/** What finds a running server again after a restart of the broker; kept as JSON in the workspace's row. */
export type LaunchHandle = { launcher: string; generation: number } & Record<string, unknown>;

export type RunningWorkspace = { endpoint: string; handle: LaunchHandle };

/** What people of a running workspace should know of the place where it runs. */
export type PlaceNews = {
  sentence: string;
  /** It has to leave, and is started anew elsewhere after this notice. */
  movesAfterMs?: number;
};

/** Something of a workspace ended by itself; the workspace runs in the same place, without what was in memory. */
export type Restarted = {
  /** When it ended. */
  at: Date;
  /**
   * Cause of the server's end: too little memory, its machine or what runs containers there, or the server itself.
   * `program`: the server stayed, and one program was ended for memory.
   */
  cause: "memory" | "machine" | "itself" | "program";
  /** What happened, what is lost, and what to do. */
  sentence: string;
};

export type Observation =
  /** `restarted`: the last time that it was. `waits`: it is made, and its server process does not run yet. */
  | ({ state: "running"; news?: PlaceNews; restarted?: Restarted; waits?: true } & RunningWorkspace)
  /** `reason` is a sentence when it ended by itself; `placeLost`: with its place, and another one could take it. */
  | { state: "stopped"; reason?: string; placeLost?: true };

/** Whether workspaces are kept apart; when not, `reason` says what is missing, for page and log. */
export type Isolation = { isolated: true } | { isolated: false; reason: string };

/** Which limits hold for workspaces and what enforces them, a sentence for the health page. */
export type EnforcedLimits = { by: "control-group" | "watch" | "none"; sentence: string };

/** Why no new workspace starts for now: what happened, then what to do. Sentences for a person. */
export type Refusal = { happened: string; next: string };

/** A launch that was refused, with the message for a person; workspaces that run are not concerned. */
export class LaunchRefused extends Error {
  constructor({ happened, next }: Refusal) {
    super(`${happened} ${next}`);
  }
}

/** What a workspace's processes have used so far, and hold now. */
export type Usage = {
  /** Processor time since its start, milliseconds; it only grows. */
  cpuMs: number;
  /** Memory that is theirs alone: files they have mapped do not count. */
  memoryBytes: number;
};

/** Something that was made for a workspace; the names are the launcher's own. */
export type Belonging = { kind: string; namespace: string; name: string; workspaceId: string };

export interface Launcher {
  readonly name: string;
  /** So many of its starts may be under way at one time; further ones wait for one of them to come to its end. */
  readonly startsAtOnce: number;
  isolation(): Promise<Isolation>;
  /** Why `ensure` refuses new launches now; undefined when launches work. Missing where nothing is ever short. */
  refusal?(): Promise<Refusal | undefined>;
  /** Brings the workspace up and returns when its server process runs; it may not answer yet. */
  ensure(spec: WorkspaceSpec, report: LaunchReport, signal: AbortSignal): Promise<RunningWorkspace>;
  observe(id: string): Promise<Observation>;
  /**
   * Goes on with a start whose broker has gone, as long as that start may take: returns when the server process runs,
   * undefined when what was made has gone meanwhile. Missing where nothing made waits (`waits` of `observe`).
   */
  awaitBegun?(begun: BegunWorkspace, report: LaunchReport, signal: AbortSignal): Promise<RunningWorkspace | undefined>;
  /** Ends it, politely first; files stay. Settles when nothing of it runs any more. */
  stop(id: string): Promise<void>;
  /** Stops it and deletes its files. */
  remove(id: string): Promise<void>;
  /**
   * Reads a dataset into the cache of the node that its workspaces run on, telling how far it has come until `tell`
   * answers false; undefined when nothing is to be read. Missing where a launcher has no way to do that: then the
   * workspace's own server is asked.
   */
  prefetch?(
    dataset: DatasetMount,
    tell: (so: Prefetched) => boolean,
    signal: AbortSignal,
  ): Promise<Prefetched | undefined>;
  /** Bytes of a stopped workspace's files. Missing where files lie in volumes of fixed size. */
  filesBytes?(id: string, signal: AbortSignal): Promise<number>;
  /** Measures these workspaces; those that do not run, or that it cannot see into, are left out. */
  usage(ids: readonly string[]): Promise<Map<string, Usage>>;
  /** How limits of workspaces are enforced. Missing where a cluster does. */
  limits?(): Promise<EnforcedLimits>;
  /** Holds running workspaces to their limits until it is stopped. Missing where something else does. */
  watchLimits?(log: Logger): { stop: () => Promise<void> };
  /** The last lines of its output. */
  logs(id: string, lines: number): Promise<string[]>;
  /**
   * Hands over what it prints after `since`, line by line, with when it was printed; of what it has printed before this
   * was called, the last lines. Settles when it ends or `signal` aborts. Missing where a launcher has no way to do that.
   */
  followLog?(id: string, since: Date, onLine: (line: string, at: Date) => void, signal: AbortSignal): Promise<void>;
  /** Where the gateway reaches it, or undefined when it does not run. */
  endpoint(id: string): Promise<string | undefined>;
  /** All that is there of this installation's workspaces; a launcher that can leave nothing behind has none. */
  belongings?(): Promise<Belonging[]>;
}
