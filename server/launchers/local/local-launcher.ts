/**
 * Workspaces as JupyterLab processes on this machine, each in a sandbox of its own. They are detached: they outlive
 * the broker, which finds them again by the process start in `handle.json`.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, open, readdir, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type ReadFileSystem, readDisk } from "#server/disk.ts";
import { isWorkspaceId } from "#server/ids.ts";
import { unixEndpoint } from "#server/jupyter/endpoint.ts";
import { thisMachinesMemory } from "#server/launchers/capacity.ts";
import { jupyterCommand } from "#server/launchers/jupyter-process.ts";
import {
  type DatasetMount,
  type EnforcedLimits,
  type Isolation,
  type Launcher,
  LaunchRefused,
  type LaunchReport,
  type Observation,
  type Prefetched,
  type Refusal,
  type RunningWorkspace,
  type Usage,
  type WorkspaceSpec,
} from "#server/launchers/launcher.ts";
import { insideLayout } from "#server/launchers/layout.ts";
import type { Logger } from "#server/log.ts";
import { formatBytes } from "#server/scheduler/amount.ts";
import { shortFolder } from "#server/short-folder.ts";
import { workspaceSockets } from "#server/workspace-sockets.ts";
import { withBoundedLog } from "./bounded-log.ts";
import {
  type ControlGroups,
  inGroup,
  makeGroup,
  placeOfBroker,
  prepareControlGroups,
  ranOutOfMemory,
  removeGroup,
} from "./control-groups.ts";
import { type DatasetFolder, foldersOf, prefetchFolder } from "./dataset-mounts.ts";
import { DiskWatch } from "./disk-watch.ts";
import { enforcedLimits } from "./enforced-limits.ts";
import { type BuiltEnvironment, environmentForWorkspace, environmentState } from "./environment.ts";
import { FilesWatch, type WatchedFiles } from "./files-watch.ts";
import { asRestarted, dropLimitRecord, endedSentence, readLimitRecord } from "./limit-record.ts";
import { LimitWatch, type Watched } from "./limit-watch.ts";
import { DEFAULT_FILES_BYTES, defaultSize, filesLimitOf, limitsOf } from "./limits.ts";
import { isFromBefore, type LocalHandle, readHandle } from "./local-handle.ts";
import { layDefinition } from "./lock-definition.ts";
import { MemoryBudget } from "./memory-budget.ts";
import { FORWARDER, FORWARDER_INSIDE, forwardCommand, SOCKETS_INSIDE } from "./network.ts";
import { childOf, isAlive, type ProcessStart, processStat, signalProcess } from "./processes.ts";
import { isolation, type Mount, probeSandbox, type SandboxMode, sandboxCommand, workspaceUid } from "./sandbox.ts";
import { usageOfTrees } from "./usage.ts";
import { startEnvironment, workspaceEnvironment } from "./workspace-environment.ts";
import {
  hostLayout,
  JUPYTER_CONFIG,
  measureFiles,
  OPENCL_DRIVER,
  prepareFiles,
  removeFiles,
  type WorkspacePaths,
  workspacePaths,
} from "./workspace-files.ts";
import { memoryFileSystems } from "./workspace-memory.ts";

const INIT = path.join(import.meta.dirname, "init.sh");

/** How long a server may take to end by itself before everything in its sandbox is killed. */
const STOP_GRACE_MS = 8_000;

const NICENESS = 5;

const LOG_TAIL_BYTES = 65_536;

export type LocalLauncherOptions = {
  stateDir: string;
  wheel: string | undefined;
  /** Bytes that files of a workspace with 4 GiB of memory may take on disk; default `DEFAULT_FILES_BYTES`. */
  filesBytes?: number;
  /** Maximum sum of the memory limits of running workspaces, bytes; default: twice the memory of this machine. */
  memoryBytes?: number;
  readFileSystem?: ReadFileSystem;
};

/** Notebooks seldom use all that their sizes allow: by default the sizes may add up to this much of the memory. */
const MEMORY_FACTOR = 2;

export class LocalLauncher implements Launcher {
  readonly name = "local";
  /** They share this machine: more at once make every one of them slower. */
  readonly startsAtOnce = 4;
  readonly #options: LocalLauncherOptions;
  readonly #memory: MemoryBudget;
  #filesWatch: FilesWatch | undefined;
  #prepared: ReturnType<typeof prepareControlGroups> | undefined;

  constructor(options: LocalLauncherOptions) {
    this.#options = options;
    this.#memory = new MemoryBudget(options.memoryBytes ?? MEMORY_FACTOR * thisMachinesMemory(), () =>
      this.#memoryLimits(),
    );
  }

  /** Prepared once: control groups that are delegated later need a restart of the broker. */
  get #groups(): ReturnType<typeof prepareControlGroups> {
    this.#prepared ??= prepareControlGroups(placeOfBroker());
    return this.#prepared;
  }

  async limits(): Promise<EnforcedLimits> {
    const isWatching = this.#filesWatch !== undefined;
    return enforcedLimits({ groups: await this.#groups, mode: probeSandbox().mode, isWatching });
  }

  async isolation(): Promise<Isolation> {
    return isolation();
  }

  async refusal(): Promise<Refusal | undefined> {
    const { stateDir, readFileSystem } = this.#options;
    // A state directory that cannot be read fails the launch with its own error.
    const disk = await readDisk(stateDir, readFileSystem).catch(() => undefined);
    if (disk?.isShort !== true) return undefined;
    return {
      happened: `The disk of ${stateDir} is almost full: ${formatBytes(disk.availableBytes)} left. The remaining space belongs to the database and logs, and no workspace starts.`,
      next: "Delete unneeded files, or enlarge the disk. Launches work again once space is free.",
    };
  }

  async ensure(spec: WorkspaceSpec, report: LaunchReport, signal: AbortSignal): Promise<RunningWorkspace> {
    const { mode, reason } = probeSandbox();
    if (mode === undefined && !spec.allowUnisolated) throw new Error(`Workspaces cannot be isolated: ${reason}.`);
    const paths = this.#paths(spec.id);
    const running = await readHandle(paths);
    if (running !== undefined) {
      const isOurs = running.generation === spec.generation && !isFromBefore(running);
      if (isOurs && (await isAlive(running))) return asRunning(running);
      await this.stop(spec.id);
    }
    const refusal = await this.refusal();
    if (refusal !== undefined) throw new LaunchRefused(refusal);
    const environment = await this.#environment(spec, report, signal);
    report.started("sandbox", mode === undefined ? `Starting without a sandbox: ${reason}` : "Making the sandbox");
    const datasets = await foldersOf(spec.datasets, (line) => report.log("sandbox", line));
    if (mode === undefined && datasets.some(({ writable }) => !writable)) {
      report.log("sandbox", "Datasets are links here: nothing keeps a program from changing the files behind them");
    }
    await dropLimitRecord(paths.limit);
    const groups = await this.#groups;
    const { memoryBytes } = spec.size ?? defaultSize();
    const handle = await this.#memory.with(
      spec.id,
      memoryBytes,
      async () => await start({ spec, paths, environment, mode, datasets, groups }),
    );
    report.done("sandbox", mode === undefined ? "Started without a sandbox" : "The sandbox runs");
    return asRunning(handle);
  }

  async observe(id: string): Promise<Observation> {
    const handle = await readHandle(this.#paths(id));
    if (handle === undefined) return { state: "stopped" };
    const alive = await isAlive(handle);
    if (alive && isFromBefore(handle)) {
      return { state: "stopped", reason: "An older version of Sluice started this workspace. Start it again." };
    }
    const limited = await readLimitRecord(this.#paths(id).limit, handle.generation);
    if (alive) {
      const restarted = limited?.ended === "process" ? asRestarted(limited) : undefined;
      const news = this.#filesWatch?.newsOf(id);
      return { state: "running", ...asRunning(handle), ...(news && { news }), ...(restarted && { restarted }) };
    }
    if (handle.group !== undefined && handle.limits !== undefined && (await ranOutOfMemory(handle.group))) {
      return { state: "stopped", reason: endedSentence("memory", handle.limits) };
    }
    if (limited?.ended === "workspace") return { state: "stopped", reason: limited.sentence };
    return { state: "stopped", reason: "The Jupyter server of this workspace ended by itself." };
  }

  async stop(id: string): Promise<void> {
    const paths = this.#paths(id);
    const handle = await readHandle(paths);
    if (handle !== undefined) await end(handle);
    // A start that was cut off has left a group without a handle.
    const groups = await this.#groups;
    const group = handle?.group ?? ("folder" in groups ? path.join(groups.folder, id) : undefined);
    if (group !== undefined) await removeGroup(group);
    // A start that was cut off between its process and its handle has nothing that finds it but its log's owner.
    if (existsSync(paths.handle)) await rename(paths.handle, `${paths.handle}.ended`);
  }

  async remove(id: string): Promise<void> {
    await this.stop(id);
    await removeFiles(this.#paths(id));
  }

  async filesBytes(id: string, signal: AbortSignal): Promise<number> {
    return await measureFiles(this.#paths(id), signal);
  }

  async prefetch(
    dataset: DatasetMount,
    tell: (so: Prefetched) => boolean,
    signal: AbortSignal,
  ): Promise<Prefetched | undefined> {
    return await prefetchFolder(dataset, tell, signal);
  }

  async usage(ids: readonly string[]): Promise<Map<string, Usage>> {
    const starts = new Map<string, ProcessStart>();
    for (const id of ids) {
      const handle = await readHandle(this.#paths(id)).catch(() => undefined);
      if (handle !== undefined) starts.set(id, handle);
    }
    return usageOfTrees(starts);
  }

  watchLimits(log: Logger): { stop: () => Promise<void> } {
    const limitWatch = new LimitWatch(
      async () => (await this.#limited()).filter(({ group }) => group === undefined),
      log,
    );
    const filesWatch = new FilesWatch(async () => await this.#limited(), log);
    this.#filesWatch = filesWatch;
    const { stateDir, readFileSystem } = this.#options;
    const diskWatch = new DiskWatch({
      ...{ stateDir, log, readFileSystem },
      // A workspace can write to its runtime folder too.
      running: async () => (await this.#limited()).map((each) => ({ ...each, folders: [this.#paths(each.id).base] })),
    });
    const watches = [limitWatch, filesWatch, diskWatch];
    return { stop: async () => void (await Promise.all(watches.map(async (watch) => await watch.stop()))) };
  }

  /** Memory limits of the workspaces that run. */
  async #memoryLimits(): Promise<Map<string, number>> {
    const limits = new Map<string, number>();
    for (const { id, first, limits: each } of await this.#limited()) {
      if (await isAlive(first)) limits.set(id, each.memoryBytes);
    }
    return limits;
  }

  /** Workspaces with a handle. The watches themselves leave out workspaces that have ended. */
  async #limited(): Promise<(Watched & WatchedFiles & { group: string | undefined })[]> {
    const ids = await readdir(path.join(this.#options.stateDir, "workspaces")).catch(() => []);
    const watched: (Watched & WatchedFiles & { group: string | undefined })[] = [];
    for (const id of ids.filter(isWorkspaceId)) {
      const paths = this.#paths(id);
      const handle = await readHandle(paths).catch(() => undefined);
      if (handle?.limits === undefined) continue;
      const { generation, isolated, limits, group } = handle;
      watched.push({
        ...{ id, generation, isolated, first: handle, limits, recordFile: paths.limit },
        memoryFileSystems: limits.memoryFileSystems,
        ...{ group, folders: [paths.home, paths.packages, paths.tmp] },
        limitBytes: filesLimitOf(limits.memoryBytes, this.#options.filesBytes ?? DEFAULT_FILES_BYTES),
      });
    }
    return watched;
  }

  async logs(id: string, lines: number): Promise<string[]> {
    return (await readTail(this.#paths(id).log))
      .split("\n")
      .filter((line) => line.trim() !== "")
      .slice(-lines);
  }

  async endpoint(id: string): Promise<string | undefined> {
    const seen = await this.observe(id);
    return seen.state === "running" ? seen.endpoint : undefined;
  }

  #paths(id: string): WorkspacePaths {
    return workspacePaths(this.#options.stateDir, id);
  }

  async #environment(spec: WorkspaceSpec, report: LaunchReport, signal: AbortSignal): Promise<BuiltEnvironment> {
    const { state } = await environmentState(this.#options.stateDir, spec.environment);
    const title =
      state === "ready"
        ? `Looking for the environment ${spec.environment}`
        : `Building the environment ${spec.environment}, once for all workspaces: this takes minutes`;
    report.started("environment", title);
    if (spec.definition !== undefined) await layDefinition(spec.definition, this.#options.stateDir);
    const built = await environmentForWorkspace(spec.environment, {
      ...this.#options,
      signal,
      onLine: (line) => report.log("environment", line),
    });
    report.done("environment", `${spec.environment} with Python ${built.pythonVersion}`);
    return built;
  }
}

type StartInput = {
  spec: WorkspaceSpec;
  paths: WorkspacePaths;
  environment: BuiltEnvironment;
  mode: SandboxMode | undefined;
  datasets: DatasetFolder[];
  groups: ControlGroups | { missing: string };
};

async function start(input: StartInput): Promise<LocalHandle> {
  const { spec: asked, paths, environment, mode, datasets, groups } = input;
  const spec = { ...asked, size: asked.size ?? defaultSize() };
  const limits = limitsOf(spec.size);
  // Installers unpack gigabytes into TMPDIR: `/tmp` is in memory and small, `/var/tmp` is on disk.
  const layout = mode === undefined ? hostLayout(paths, environment) : { ...insideLayout, tmp: "/var/tmp" };
  const uid = workspaceUid(spec.id);
  const insideUid = mode?.userNamespace ? 1000 : uid;
  const owner = mode?.asRoot ? uid : undefined;
  const links = mode === undefined ? datasets : [];
  await prepareFiles({ paths, layout, environment, credential: spec.credential, owner, insideUid, links });
  // Each start has its own socket name, so that connections to an earlier server are not used again.
  const socket = `jupyter-${spec.generation}.sock`;
  const python = `${layout.environment}/bin/python`;
  const ready = `${layout.run}/started`;
  // Only where nothing isolates and the installation itself runs as root.
  const asRoot = process.getuid?.() === 0 ? ["--ServerApp.allow_root=True"] : [];
  const command = [
    "sh",
    INIT,
    ready,
    `${layout.run}/overlay`,
    layout.packages,
    layout.datasets,
    mode === undefined ? "" : forwardCommand(python),
    ...jupyterCommand(layout, {
      socket: path.join(mode === undefined ? await shortFolder(paths.run) : layout.run, socket),
    }),
    ...asRoot,
  ];
  const mounts: Mount[] = [
    ...(environment.basePrefix === "/usr" ? [] : [{ from: environment.basePrefix, to: environment.basePrefix }]),
    { from: environment.path, to: layout.environment },
    { from: JUPYTER_CONFIG, to: layout.jupyterConfig },
    { from: INIT, to: INIT_INSIDE },
    { from: FORWARDER, to: FORWARDER_INSIDE },
    { from: paths.sockets, to: SOCKETS_INSIDE },
    { from: path.join(paths.etc, "passwd"), to: "/etc/passwd" },
    { from: path.join(paths.etc, "group"), to: "/etc/group" },
    { from: path.join(paths.etc, path.basename(OPENCL_DRIVER)), to: OPENCL_DRIVER },
    { from: paths.home, to: layout.home, writable: true },
    { from: paths.packages, to: layout.packages, writable: true },
    { from: paths.run, to: layout.run, writable: true },
    { from: paths.gpuds, to: layout.gpuds },
    { from: paths.tmp, to: layout.tmp, writable: true },
    // Not in the home: the workspace could have laid a link there for the mount to follow.
    ...datasets.map(({ name, folder, writable }) => ({
      ...{ from: folder, to: `${layout.datasets}/${name}`, writable },
      // A workspace that can write above the folder can put a link in its place.
      isWithoutLinks: true,
    })),
  ];
  const sandboxed =
    mode === undefined
      ? command
      : sandboxCommand({
          ...{ mode, root: paths.root, uid, mounts, limits },
          // Not the environment's own: a package of a proposal can replace it.
          python: environment.interpreter,
          command: command.with(1, INIT_INSIDE),
        });

  const variables = await workspaceEnvironment(spec, layout, environment, mode === undefined ? "host" : "own");
  const log = await open(paths.log, "w+", 0o600);
  try {
    const group = "folder" in groups ? await makeGroup(groups, { id: spec.id, limits }) : undefined;
    // Without a control group, a lower priority keeps database, portal and GPU servers responsive.
    const limited = group === undefined ? ["nice", "-n", String(NICENESS), ...sandboxed] : inGroup(group, sandboxed);
    const [program = "python3", ...args] = withBoundedLog(environment.interpreter, limited);
    const child = spawn(program, args, {
      cwd: "/",
      detached: true,
      env: startEnvironment(variables) as NodeJS.ProcessEnv,
      stdio: ["ignore", log.fd, log.fd],
    });
    const failure = new Promise<never>((_, reject) => {
      child.once("error", reject);
      child.once("exit", (code) => reject(new Error(`The sandbox could not be made (it ended with ${code}).`)));
    });
    failure.catch(() => undefined);
    child.unref();
    await Promise.race([failure, fileAppears(path.join(paths.run, "started"))]);
    const first = mode === undefined ? await self(child.pid) : await childOf(child.pid ?? 0);
    if (first === undefined) throw new Error("The workspace's first process ended at once.");
    const handle: LocalHandle = {
      launcher: "local",
      generation: spec.generation,
      ...first,
      socket: path.join(paths.run, socket),
      isolated: mode !== undefined,
      limits: {
        ...{ memoryBytes: limits.memoryBytes, tasks: limits.tasks },
        memoryFileSystems: mode === undefined ? {} : memoryFileSystems(first.pid),
      },
      ...(group !== undefined && { group }),
      environment: path.basename(environment.path),
    };
    await writeFile(`${paths.handle}.new`, JSON.stringify(handle), { mode: 0o600, flush: true });
    await rename(`${paths.handle}.new`, paths.handle);
    return handle;
  } finally {
    await log.close();
  }
}

const INIT_INSIDE = "/opt/sluice/init.sh";

async function self(pid: number | undefined): Promise<ProcessStart | undefined> {
  const stat = pid === undefined ? undefined : await processStat(pid);
  return pid === undefined || stat === undefined ? undefined : { pid, startTime: stat.startTime };
}

async function fileAppears(file: string): Promise<void> {
  for (let waited = 0; waited < 10_000; waited += 10) {
    if (existsSync(file)) return;
    await sleep(10);
  }
  throw new Error("The sandbox did not start within 10 s.");
}

async function end(handle: LocalHandle): Promise<void> {
  if (!(await isAlive(handle))) return;
  signalProcess(handle.pid, "SIGTERM");
  for (let waited = 0; waited < STOP_GRACE_MS; waited += 50) {
    if (!(await isAlive(handle))) return;
    await sleep(50);
  }
  // Unisolated, the first process leads a process group of its own.
  signalProcess(handle.isolated ? handle.pid : -handle.pid, "SIGKILL");
  for (let waited = 0; waited < 5_000; waited += 50) {
    if (!(await isAlive(handle))) return;
    await sleep(50);
  }
  throw new Error("The workspace's processes could not be ended.");
}

/** The end of a file that may have grown to any size. */
async function readTail(name: string): Promise<string> {
  const file = await open(name, "r").catch(() => undefined);
  if (file === undefined) return "";
  try {
    const { size } = await file.stat();
    const buffer = Buffer.alloc(Math.min(size, LOG_TAIL_BYTES));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, size - buffer.length);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}

function asRunning(handle: LocalHandle): RunningWorkspace {
  return { endpoint: unixEndpoint(handle.socket), handle };
}

/** Makes the folder that holds all workspaces, and the one where datasets lie unless the operator says otherwise. */
export async function prepareStateDir(stateDir: string): Promise<void> {
  await mkdir(path.join(stateDir, "workspaces"), { recursive: true, mode: 0o700 });
  for (const folder of [path.join(stateDir, "datasets"), workspaceSockets(stateDir)])
    await mkdir(folder, { recursive: true, mode: 0o755 });
}
