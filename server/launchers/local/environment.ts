/**
 * Environments of the local launcher: built once per content of their locked definition into
 * `<state>/environments/<name>-<hash>`, read-only afterwards, and shared by all workspaces. Definitions come with this
 * installation, or were proposed and locked on it (`lock-definition.ts`): of those, nothing runs before it is in a sandbox.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { EgressPolicy } from "#server/contracts/egress.ts";
import { deviceNeeds } from "#server/contracts/lease.ts";
import { readEnv } from "#server/env.ts";
import { messageFor } from "#server/errors.ts";
import { unfinishedName } from "#server/unfinished-name.ts";
import { runConfined, takeBack } from "./confined.ts";
import { withFileLock } from "./file-lock.ts";
import { cachesOf, removeCaches, replaceFile, writeLabSettings } from "./package-links.ts";
import { isAlive, runLines } from "./processes.ts";
import { findUv } from "./uv.ts";
import { builtWheel } from "./wheel.ts";

const REPOSITORY = path.resolve(import.meta.dirname, "..", "..", "..");
const DEFINITIONS = path.join(REPOSITORY, "server", "environments");

/** Raised when the way of building changes, so that environments are built again. */
const RECIPE = "2";

export const definitionSchema = z.object({
  name: z.string().regex(/^[a-z0-9-]+$/),
  title: z.string(),
  description: z.string(),
  /** Python versions it is locked for, e.g. `>=3.10,<3.14`. */
  python: z.string(),
  requirements: z.string(),
  /** A Python program of this repository that builds one more wheel and prints its path: what no index has. */
  build: z.string().optional(),
  /** JupyterLab settings, a file of the definition. */
  labSettings: z.string().optional(),
  /** What its programs need of a device. */
  needs: deviceNeeds.optional(),
  /** Environment variables of every process in a workspace. */
  env: z.record(z.string(), z.string()).default({}),
});
export type EnvironmentDefinition = z.infer<typeof definitionSchema>;

const pythonSchema = z.object({
  executable: z.string(),
  version: z.string(),
  basePrefix: z.string(),
  platform: z.string(),
});
type Python = z.infer<typeof pythonSchema>;

const PRUNE_AFTER_MS = 3_600_000;
const usedSchema = z.object({ pid: z.int(), startTime: z.int(), environment: z.string().default("") });

const builtSchema = z.object({ hash: z.string(), python: pythonSchema, env: z.record(z.string(), z.string()) });

/** A built environment. */
export type BuiltEnvironment = {
  path: string;
  hash: string;
  /** `3.11`: part of the path of site-packages. */
  pythonVersion: string;
  /** Where the interpreter it is based on lives; workspaces need to see it. */
  basePrefix: string;
  /** That interpreter, outside `path`: the installation may run it on the host. */
  interpreter: string;
  env: Record<string, string>;
};

/** What installing packages needs. */
export type PrepareOptions = {
  stateDir: string;
  onLine: (line: string) => void;
  signal?: AbortSignal;
  /** The outgoing network policy for what a proposal runs; default: the one of a team for which nothing is set. */
  egressPolicy?: EgressPolicy;
};

export type BuildOptions = PrepareOptions & {
  /** The built `sluice_gpu` wheel; without it notebooks have no `%gpu`. */
  wheel: string | undefined;
};

/** A definition and where its files lie; `proposed`: it was locked here and does not come with this installation. */
export type FoundDefinition = { definition: EnvironmentDefinition; folder: string; proposed: boolean };

/** Where a proposal's locked definition lies. */
export const proposedDefinition = (stateDir: string, word: string): string => path.join(stateDir, "definitions", word);

/** The definition of an environment, or undefined when there is none of that name. */
export async function readDefinition(name: string, stateDir: string): Promise<FoundDefinition | undefined> {
  if (!/^[a-z0-9-]+$/.test(name)) return undefined;
  // Names that people give hold no two dashes in a row.
  const proposed = name.includes("--");
  const folder = proposed ? proposedDefinition(stateDir, name) : path.join(DEFINITIONS, name);
  const file = path.join(folder, "environment.json");
  if (!existsSync(file)) return undefined;
  return { definition: definitionSchema.parse(JSON.parse(await readFile(file, "utf8"))), folder, proposed };
}

/** How an environment stands on this installation, for every process to see; kept beside the built folders. */
const stateSchema = z.discriminatedUnion("state", [
  z.object({ state: z.literal("building") }),
  z.object({ state: z.literal("ready"), hash: z.string() }),
  z.object({ state: z.literal("failed"), message: z.string() }),
]);
export type EnvironmentState = z.infer<typeof stateSchema> | { state: "pending" };

/**
 * Builds an environment as a step of start-up, with the settings of this process. What is built already takes no
 * time. The last good build stays in use until the new one is ready.
 */
export async function buildEnvironment(name: string, onLine: (line: string) => void): Promise<BuiltEnvironment> {
  const { SLUICE_STATE_DIR, SLUICE_WHEEL } = readEnv();
  return await ensureEnvironment(name, { stateDir: SLUICE_STATE_DIR, wheel: SLUICE_WHEEL, onLine });
}

/** The same with settings given: finds or builds the environment, and records it as the one that workspaces use. */
export async function ensureEnvironment(name: string, options: BuildOptions): Promise<BuiltEnvironment> {
  const record = (state: EnvironmentState) => writeState(options.stateDir, name, state);
  const before = await environmentState(options.stateDir, name);
  if (before.state !== "ready") await record({ state: "building" });
  try {
    const built = await findOrBuild(name, options);
    await record({ state: "ready", hash: built.hash });
    await prune(options.stateDir, name, path.basename(built.path));
    return built;
  } catch (error) {
    if (before.state !== "ready" && !options.signal?.aborted) {
      await record({ state: "failed", message: messageFor(error) });
    }
    throw error;
  }
}

/**
 * The environment for a workspace, built now when nobody has built it yet. Before the first wheel is there (the broker
 * starts while everything is still compiled), it waits for the step of start-up that makes it.
 */
export async function environmentForWorkspace(name: string, options: BuildOptions): Promise<BuiltEnvironment> {
  if ((await readDefinition(name, options.stateDir)) === undefined)
    throw new Error(`There is no environment "${name}" on this installation.`);
  let told = false;
  for (;;) {
    options.signal?.throwIfAborted();
    const wheel = options.wheel ?? (await builtWheel(options.stateDir));
    if (wheel !== undefined) return await ensuredOnce(name, { ...options, wheel });
    const found = await environmentState(options.stateDir, name);
    if (found.state === "ready")
      return await readBuilt(path.join(options.stateDir, "environments", `${name}-${found.hash}`));
    if (found.state === "failed") throw new Error(`The environment could not be built. ${found.message}`);
    if (!told) options.onLine("The environment is still being built; this workspace starts as soon as it is ready");
    told = true;
    await sleep(300);
  }
}

/** What this process has ensured: definitions change with a new start only, and looking for Python takes its time. */
const ensured = new Map<string, BuiltEnvironment>();

async function ensuredOnce(name: string, options: BuildOptions & { wheel: string }): Promise<BuiltEnvironment> {
  const key = `${options.stateDir}\0${name}\0${options.wheel}`;
  const known = ensured.get(key);
  if (known !== undefined && existsSync(known.path)) return known;
  const built = await ensureEnvironment(name, options);
  ensured.set(key, built);
  return built;
}

/** How an environment stands; `pending` when nobody has built it yet. */
export async function environmentState(stateDir: string, name: string): Promise<EnvironmentState> {
  const text = await readFile(path.join(stateDir, "environments", `${name}.json`), "utf8").catch(() => undefined);
  const parsed = text === undefined ? undefined : stateSchema.parse(JSON.parse(text));
  const lost = parsed?.state === "ready" && !existsSync(path.join(stateDir, "environments", `${name}-${parsed.hash}`));
  return parsed === undefined || lost ? { state: "pending" } : parsed;
}

/**
 * An old build, or packages that were prepared for one and never taken, go when no running workspace looks into them;
 * young ones may be in use where we cannot see it.
 */
export async function prune(stateDir: string, name: string, current: string): Promise<void> {
  const parent = path.join(stateDir, "environments");
  const names = await usedEnvironments(stateDir);
  if (names === undefined) return;
  const used = new Set([current, ...names]);
  for (const folder of await readdir(parent)) {
    if (!new RegExp(`^${name}-[0-9a-f]{16}(\\.base)?$`).test(folder) || used.has(folder)) continue;
    const { mtimeMs } = await stat(path.join(parent, folder));
    if (Date.now() - mtimeMs > PRUNE_AFTER_MS) await remove(path.join(parent, folder));
  }
}

/** The environments of workspaces that run, by their handles; undefined when one does not tell which it uses. */
export async function usedEnvironments(stateDir: string): Promise<string[] | undefined> {
  const workspaces = path.join(stateDir, "workspaces");
  const names: string[] = [];
  for (const id of await readdir(workspaces).catch(() => [])) {
    const text = await readFile(path.join(workspaces, id, "handle.json"), "utf8").catch(() => undefined);
    if (text === undefined) continue;
    const handle = parseUsed(text);
    if (handle !== undefined && !(await isAlive(handle))) continue;
    if (handle === undefined || handle.environment === "") return undefined;
    names.push(handle.environment);
  }
  return names;
}

function parseUsed(text: string): z.infer<typeof usedSchema> | undefined {
  try {
    return usedSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

async function writeState(stateDir: string, name: string, state: EnvironmentState): Promise<void> {
  const file = path.join(stateDir, "environments", `${name}.json`);
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
  const unfinished = unfinishedName(file);
  await writeFile(unfinished, JSON.stringify(state));
  await rename(unfinished, file);
}

/** Brings the environment into being unless it is there; builders that start together wait for one another. */
async function findOrBuild(name: string, options: BuildOptions): Promise<BuiltEnvironment> {
  const source = await readSource(name, options);
  const hash = await contentHash(source, options.wheel);
  const parent = path.join(options.stateDir, "environments");
  const target = path.join(parent, `${name}-${hash}`);
  if (!existsSync(target)) {
    await mkdir(parent, { recursive: true, mode: 0o700 });
    const waiting = "Another process builds this environment; waiting for it";
    await withFileLock(`${target}.lock`, { ...options, waiting }, async () => {
      if (existsSync(target)) return;
      const build = { ...source, hash, target };
      if (source.proposed) {
        await buildProposed(build, options).catch(async (error: unknown) => {
          // Nobody may want it any more.
          await remove(`${target}.building`).catch(() => undefined);
          throw error;
        });
      } else await withBase(source, options, (base) => buildOn(base, build, options));
    });
  }
  return await readBuilt(target);
}

/** Description of a finished build, from the file in its folder. */
export async function readBuilt(target: string): Promise<BuiltEnvironment> {
  const built = builtSchema.parse(JSON.parse(await readFile(path.join(target, "sluice-environment.json"), "utf8")));
  return {
    path: target,
    hash: built.hash,
    pythonVersion: built.python.version.split(".").slice(0, 2).join("."),
    basePrefix: built.python.basePrefix,
    interpreter: basePython(built.python),
    env: built.env,
  };
}

/**
 * Installs an environment's packages ahead of its build, as far as that needs no wheel: start-up does this beside the
 * Rust build. The build takes what was prepared.
 */
export async function prepareEnvironment(name: string, options: PrepareOptions): Promise<void> {
  const source = await readSource(name, options);
  await withBase(source, options, async () => undefined);
}

type Source = FoundDefinition & { python: Python; uv: string };

async function readSource(name: string, options: PrepareOptions): Promise<Source> {
  const found = await readDefinition(name, options.stateDir);
  if (found === undefined) throw new Error(`There is no environment "${name}".`);
  const uv = await findUv(options.stateDir, options.onLine);
  return { ...found, uv, python: await findPython(uv, found.definition.python) };
}

/** Calls `use` with a folder that holds all packages but ours, alone in it; what `use` leaves there is kept. */
async function withBase(source: Source, options: PrepareOptions, use: (base: string) => Promise<void>): Promise<void> {
  const hash = await contentHash(source, undefined);
  const parent = path.join(options.stateDir, "environments");
  const base = path.join(parent, `${source.definition.name}-${hash}.base`);
  await mkdir(parent, { recursive: true, mode: 0o700 });
  const waiting = "Another process installs this environment's packages; waiting for it";
  await withFileLock(`${base}.lock`, { ...options, waiting }, async () => {
    if (!existsSync(base)) await installPackages(source, base, options);
    await use(base);
  });
}

async function installPackages(source: Source, base: string, options: PrepareOptions): Promise<void> {
  const { definition, python, uv } = source;
  const unfinished = `${base}.building`;
  await makeVenv(source, unfinished, options);
  await installLocked(source, installInto(unfinished, "--compile-bytecode"), options);
  if (definition.build !== undefined) {
    const wheel = await ownWheel(definition.build, python, options);
    await runUv(uv, installInto(unfinished, "--compile-bytecode", "--no-deps", wheel), options);
  }
  await rename(unfinished, base);
}

async function makeVenv({ python, uv }: Source, folder: string, options: PrepareOptions): Promise<void> {
  await remove(folder);
  options.onLine(`Python ${python.version} (${python.executable})`);
  const venv = ["venv", "--quiet", "--relocatable", "--no-project", "--python", python.executable, folder];
  await runUv(uv, venv, options);
}

/** The lock names everything, and leaves out what it means to: dependencies are not followed. */
function locked({ definition, folder }: Source, into: string[]): string[] {
  return [...into, "--no-deps", "--require-hashes", "-r", path.join(folder, definition.requirements)];
}

async function installLocked(source: Source, into: string[], options: PrepareOptions): Promise<void> {
  const install = async () => await runUv(source.uv, locked(source, into), options);
  await install().catch(async (error: unknown) => {
    if (options.signal?.aborted) throw error;
    options.onLine("The installation failed; trying once more");
    return await install();
  });
}

/** What a definition's own build makes; the program keeps it for the next time. */
async function ownWheel(program: string, python: Python, options: PrepareOptions): Promise<string> {
  options.onLine(`Building with ${program}; this takes minutes`);
  const printed = await runLines(
    python.executable,
    [path.join(REPOSITORY, program), "--cache", path.join(options.stateDir, "built")],
    { onLine: options.onLine, signal: options.signal },
  );
  const wheel = printed.findLast((line) => line.endsWith(".whl"));
  if (wheel === undefined) throw new Error(`${program} built no wheel.`);
  return wheel;
}

function installInto(folder: string, ...what: string[]): string[] {
  return ["pip", "install", "--python", path.join(folder, "bin", "python"), ...what];
}

/** Runs uv with the machine's package index. */
export async function runUv(uv: string, args: string[], options: PrepareOptions): Promise<void> {
  await runLines(uv, args, {
    cwd: options.stateDir,
    onLine: options.onLine,
    signal: options.signal,
    // pip's index is the machine's index for uv too; a private cache link would share files with other programs.
    env: {
      ...process.env,
      UV_DEFAULT_INDEX: process.env.UV_DEFAULT_INDEX ?? process.env.PIP_INDEX_URL,
      UV_LINK_MODE: "copy",
    },
  });
}

type Build = Source & { hash: string; target: string };

/** Turns a base into the environment: our package, JupyterLab's settings, a check, and nobody may write any more. */
async function buildOn(base: string, build: Build, options: BuildOptions): Promise<void> {
  const unfinished = `${build.target}.building`;
  await remove(unfinished);
  await rename(base, unfinished);
  await installSluice(build, installInto(unfinished, "--compile-bytecode"), options);
  options.onLine("Checking that JupyterLab and the kernel load");
  await runLines(path.join(unfinished, "bin", "python"), ["-c", "import ipykernel, jupyterlab, pip"], {
    onLine: options.onLine,
    signal: options.signal,
  });
  await makeCaches(unfinished, options);
  await finish(build, unfinished, options);
}

/** Fills the caches: matplotlib's list of fonts, where the environment has matplotlib. */
async function makeCaches(folder: string, options: PrepareOptions): Promise<void> {
  const program =
    "import importlib.util\nif importlib.util.find_spec('matplotlib') is not None: import matplotlib.font_manager";
  await runLines(path.join(folder, "bin", "python"), ["-c", program], {
    ...{ onLine: options.onLine, signal: options.signal },
    env: { ...process.env, MPLCONFIGDIR: path.join(cachesOf(folder), "matplotlib") },
  });
}

/**
 * Builds what somebody has proposed, confined, and without running any of it: wheels are unpacked last, by an
 * interpreter that was asked before, and are compiled by the machine's own, which looks at nothing beside it.
 * Whether JupyterLab and the kernel load is for the test in a workspace's sandbox.
 */
async function buildProposed(build: Build, options: BuildOptions): Promise<void> {
  const unfinished = `${build.target}.building`;
  await remove(unfinished);
  await mkdir(unfinished);
  const { python, uv, folder, definition } = build;
  const reads = [path.join(folder, definition.requirements), options.wheel ?? []].flat();
  const confined = async (...command: string[]) =>
    await runConfined(command, {
      ...options,
      reads: [...toolsOf(build), ...reads],
      python: basePython(python),
      writes: unfinished,
    });
  options.onLine(`Python ${python.version} (${python.executable})`);
  await confined(uv, "venv", "--quiet", "--relocatable", "--no-project", "--python", basePython(python), unfinished);
  if (options.wheel === undefined) options.onLine(NO_WHEEL);
  else await confined(uv, ...installInto(unfinished), "--no-deps", options.wheel);
  // Once: a second try would ask an interpreter that the first may have unpacked something beside.
  await confined(uv, ...locked(build, installInto(unfinished, "--only-binary", ":all:")));
  options.onLine("Compiling");
  const lib = path.join(unfinished, "lib");
  // One process: a pool's would outlive it when it is called off. Packages' own tests are a quarter of all files, and some hold another Python's grammar on purpose.
  const compile = ["-I", "-S", "-m", "compileall", "-q", "-x", "/tests/", lib];
  await confined(basePython(python), ...compile).catch((error: unknown) => {
    if (options.signal?.aborted) throw error;
    options.onLine("Some files could not be compiled; they are when they are first used");
  });
  await takeBack(unfinished);
  await removeCaches(unfinished);
  await finish(build, unfinished, options);
}

/** What the installer of a proposal looks at beside the system's own folders. */
export function toolsOf({ uv, python }: { uv: string; python: Python }): string[] {
  return [uv, ...(python.basePrefix === "/usr" ? [] : [python.basePrefix])];
}

/** The interpreter itself, where a virtual environment's was found. */
export function basePython({ executable, basePrefix, version }: Python): string {
  const [major = "", minor = ""] = version.split(".");
  return executable.startsWith(`${basePrefix}/`) ? executable : `${basePrefix}/bin/python${major}.${minor}`;
}

const NO_WHEEL = "No sluice_gpu package is built: %gpu will be missing in notebooks";

async function installSluice({ uv }: Build, into: string[], options: BuildOptions): Promise<void> {
  if (options.wheel === undefined) options.onLine(NO_WHEEL);
  else await runUv(uv, [...into, "--no-deps", options.wheel], options);
}

async function finish(build: Build, unfinished: string, options: BuildOptions): Promise<void> {
  const { definition, folder, hash, python, target } = build;
  options.signal?.throwIfAborted();
  if (definition.labSettings !== undefined) {
    await writeLabSettings(unfinished, await readFile(path.join(folder, definition.labSettings)));
  }
  const facts = { hash, python, env: definition.env };
  await replaceFile(path.join(unfinished, "sluice-environment.json"), `${JSON.stringify(facts, null, 2)}\n`);
  await runLines("chmod", ["-R", "a+rX,a-w", unfinished]);
  await rename(unfinished, target);
}

/** Deletes an environment, whose folders nobody may write to. */
export async function remove(folder: string): Promise<void> {
  if (!existsSync(folder)) return;
  await runLines("chmod", ["-R", "u+w", folder]);
  await rm(folder, { recursive: true, force: true });
}

/** The machine's interpreter of these versions, e.g. `>=3.10` or `==3.11.*`. */
export async function findPython(uv: string, versions: string): Promise<Python> {
  let executable: string | undefined;
  try {
    executable = (await runLines(uv, ["python", "find", "--no-project", "--no-managed-python", versions])).at(-1);
  } catch {
    throw new Error(`Python ${versions} is missing. Install it: apt-get install python3 python3-pip.`);
  }
  if (executable === undefined) throw new Error(`uv found no Python ${versions}.`);
  const program = [
    "import json, platform, sys",
    "print(json.dumps({'executable': sys.executable, 'version': platform.python_version(),",
    " 'basePrefix': sys.base_prefix, 'platform': platform.platform()}))",
  ].join("\n");
  return pythonSchema.parse(JSON.parse((await runLines(executable, ["-c", program])).join("")));
}

async function contentHash(
  { definition, folder, python }: Pick<Source, "definition" | "folder" | "python">,
  wheel: string | undefined,
): Promise<string> {
  const hash = createHash("sha256").update(`${RECIPE}\0${python.executable}\0${python.version}\0${process.arch}\0`);
  const files = ["environment.json", definition.requirements, definition.labSettings ?? []].flat();
  for (const file of files) hash.update(await readFile(path.join(folder, file))).update("\0");
  if (definition.build !== undefined) hash.update(await readFile(path.join(REPOSITORY, definition.build))).update("\0");
  if (wheel !== undefined) {
    if (
      !(await stat(wheel).then(
        (found) => found.isFile(),
        () => false,
      ))
    )
      throw new Error(`SLUICE_WHEEL: no file ${wheel}`);
    hash.update(await readFile(wheel));
  }
  return hash.digest("hex").slice(0, 16);
}
