/**
 * The files of one workspace: `<state>/workspaces/<id>/` holds its home, the overlay for its own packages, and what
 * belongs to one run (credential, runtime folder, Jupyter's files, log).
 */
import { existsSync } from "node:fs";
import { lchown, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { isWorkspaceId } from "#server/ids.ts";
import type { Layout } from "#server/launchers/layout.ts";
import { bytesOf } from "./disk-usage.ts";
import type { BuiltEnvironment } from "./environment.ts";
import { writeExamples } from "./examples.ts";
import { socketsOf } from "./network.ts";
import { writeCommands } from "./overlay-commands.ts";
import { cachesOf } from "./package-links.ts";
import { runLines } from "./processes.ts";

export const JUPYTER_CONFIG = path.resolve(import.meta.dirname, "..", "..", "jupyter", "config");

/** Where gpuds on this machine lay their sockets, which every local workspace sees. */
export const gpudSockets = (stateDir: string): string => path.join(stateDir, "sockets");

/** The host's paths of a workspace. */
export function workspacePaths(stateDir: string, id: string) {
  if (!isWorkspaceId(id)) throw new Error("not a workspace id");
  const base = path.join(stateDir, "workspaces", id);
  const at = (name: string) => path.join(base, name);
  return {
    base,
    home: at("home"),
    datasets: at("datasets"),
    packages: at("packages"),
    run: at("run"),
    gpuds: gpudSockets(stateDir),
    sockets: socketsOf(stateDir, id),
    tmp: at("tmp"),
    etc: at("etc"),
    root: at("root"),
    log: at("log"),
    handle: at("handle.json"),
    limit: at("limit.json"),
  };
}
export type WorkspacePaths = ReturnType<typeof workspacePaths>;

/** What the processes see when they are not isolated: the host's own paths. */
export function hostLayout(paths: WorkspacePaths, environment: BuiltEnvironment): Layout {
  const { home, datasets, packages, run, gpuds, tmp } = paths;
  return { home, datasets, packages, run, gpuds, tmp, environment: environment.path, jupyterConfig: JUPYTER_CONFIG };
}

export type PrepareInput = {
  paths: WorkspacePaths;
  layout: Layout;
  environment: BuiltEnvironment;
  credential: string;
  /** Host user that shall own the files, or undefined for the broker's own. */
  owner: number | undefined;
  /** The user id that the processes see. */
  insideUid: number;
  /** Where datasets are links, because nothing can be mounted: name and folder of each. */
  links: { name: string; folder: string }[];
};

/** Makes home and overlay on the first start, and the files of this run anew. */
export async function prepareFiles(input: PrepareInput): Promise<void> {
  const { paths, layout, environment, owner } = input;
  await mkdir(paths.base, { recursive: true, mode: 0o700 });
  for (const folder of [paths.gpuds, paths.sockets]) await mkdir(folder, { recursive: true, mode: 0o755 });
  const firstStart = !existsSync(paths.home);
  await mkdir(paths.home, { recursive: true, mode: 0o700 });
  if (firstStart) await writeExamples(path.join(paths.home, "examples"), environment);
  const firstPackages = !existsSync(paths.packages);
  await mkdir(paths.packages, { recursive: true, mode: 0o700 });
  await removeTrees([paths.run, paths.tmp, paths.etc, paths.root, paths.datasets]);
  for (const folder of [paths.etc, paths.root, paths.datasets]) await mkdir(folder, { mode: 0o755 });
  for (const { name, folder } of input.links) await symlink(folder, path.join(paths.datasets, name));
  await mkdir(paths.tmp, { mode: 0o700 });
  await mkdir(paths.run, { mode: 0o700 });
  await mkdir(path.join(paths.run, "runtime"), { mode: 0o700 });
  await mkdir(path.join(paths.run, "jupyter", "runtime"), { recursive: true, mode: 0o700 });
  await writeFile(path.join(paths.run, "credential"), input.credential, { mode: 0o600 });
  await writeOverlay(path.join(paths.run, "overlay"), layout, environment);
  await writeKernelSpec(path.join(paths.run, "jupyter", "kernels", "python3"), layout);
  await writeFile(path.join(paths.etc, "passwd"), passwd(input.insideUid, layout.home), { mode: 0o644 });
  await writeFile(path.join(paths.etc, "group"), `user:x:${input.insideUid}:\nnogroup:x:65534:\n`, { mode: 0o644 });
  await writeOpenclDriver(path.join(paths.etc, path.basename(OPENCL_DRIVER)), layout, environment);
  if (owner === undefined) return;
  // What the workspace has had in its hands is not touched again: it could have laid links for us to follow.
  if (firstStart) await give(paths.home, owner);
  if (firstPackages) await lchown(paths.packages, owner, owner);
  for (const folder of [paths.run, paths.tmp]) await give(folder, owner);
}

function passwd(uid: number, home: string): string {
  return [
    `user:x:${uid}:${uid}:Workspace:${home}:/bin/bash`,
    "nobody:x:65534:65534:nobody:/var/empty:/usr/sbin/nologin",
    "",
  ].join("\n");
}

/**
 * The overlay is a virtual environment of its own in front of the shared one: pip installs into it, what is in both
 * is taken from it, and everything else comes from the shared environment, with that one's start-up hooks. This writes
 * its fixed files for this run; the workspace's first process copies them into place, with the workspace's own rights.
 *
 * `commands` holds the shared environment's commands, run by the overlay's interpreter. `jupyter/labconfig` tells
 * the server which lab extensions the overlay disables, without server settings of packages. `cache` is copied into
 * `.cache` of the home.
 */
export async function writeOverlay(folder: string, layout: Layout, environment: BuiltEnvironment): Promise<void> {
  const version = environment.pythonVersion;
  const bin = path.join(folder, "bin");
  const site = path.join(folder, "lib", `python${version}`, "site-packages");
  const sharedSite = `${layout.environment}/lib/python${version}/site-packages`;
  const ipython = path.join(folder, "etc", "ipython");
  for (const made of [bin, site, ipython]) await mkdir(made, { recursive: true, mode: 0o755 });
  for (const name of ["python", "python3", `python${version}`]) {
    await symlink(`${layout.environment}/bin/python`, path.join(bin, name));
  }
  const config = [
    `home = ${path.posix.join(environment.basePrefix, "bin")}`,
    "include-system-site-packages = false",
    `version = ${version}`,
    "",
  ].join("\n");
  await writeFile(path.join(folder, "pyvenv.cfg"), config);
  // addsitedir, not a mere path: the shared environment's own .pth files are start-up hooks and must run.
  const hook = `import site; site.addsitedir(${JSON.stringify(sharedSite)})\n`;
  await writeFile(path.join(site, "_sluice_environment.pth"), hook);
  const magics = 'c = get_config()  # noqa: F821\nc.InteractiveShellApp.extensions.append("sluice_gpu")\n';
  await writeFile(path.join(ipython, "ipython_config.py"), existsSync(sluicePackage(environment)) ? magics : "");
  await copyCaches(cachesOf(environment.path), path.join(folder, "cache"));
  await writeCommands(path.join(folder, "commands"), environment.path);
  await mkdir(path.join(folder, "jupyter"), { mode: 0o755 });
  await symlink("../etc/jupyter/labconfig", path.join(folder, "jupyter", "labconfig"));
}

/** One folder per cache, with files. The copies get their own modes, because the environment is read-only. */
async function copyCaches(from: string, to: string): Promise<void> {
  if (!existsSync(from)) return;
  for (const cache of (await readdir(from, { withFileTypes: true })).filter((entry) => entry.isDirectory())) {
    await mkdir(path.join(to, cache.name), { recursive: true, mode: 0o755 });
    const files = await readdir(path.join(from, cache.name), { withFileTypes: true });
    for (const { name } of files.filter((entry) => entry.isFile()))
      await writeFile(path.join(to, cache.name, name), await readFile(path.join(from, cache.name, name)));
  }
}

/** Names Sluice's driver to OpenCL's loader, beside those that a person has installed. */
export const OPENCL_DRIVER = "/etc/OpenCL/vendors/sluice.icd";

/** The driver has no platform, and tells an OpenCL program to use CUDA. */
export async function writeOpenclDriver(file: string, layout: Layout, environment: BuiltEnvironment): Promise<void> {
  const library = `lib/python${environment.pythonVersion}/site-packages/sluice_gpu/lib/libsluice_opencl.so`;
  await writeFile(file, `${layout.environment}/${library}\n`, { mode: 0o644 });
}

function sluicePackage(environment: BuiltEnvironment): string {
  return path.join(environment.path, "lib", `python${environment.pythonVersion}`, "site-packages", "sluice_gpu");
}

/** Kernels run on the overlay's interpreter; the server itself on the shared one, which no user's package can break. */
export async function writeKernelSpec(folder: string, layout: Layout): Promise<void> {
  await mkdir(folder, { recursive: true });
  const spec = {
    argv: [
      `${layout.packages}/bin/python`,
      "-Xfrozen_modules=off",
      "-m",
      "ipykernel_launcher",
      "-f",
      "{connection_file}",
    ],
    display_name: "Python 3",
    language: "python",
    // No debugger: it listens on a TCP port without a password, which other workspaces reach.
    metadata: { debugger: false, supported_encryption: ["curve"] },
  };
  await writeFile(path.join(folder, "kernel.json"), `${JSON.stringify(spec, null, 2)}\n`);
}

/** Hands a tree to its user. Links are changed themselves, never followed: a workspace could have laid them. */
async function give(folder: string, owner: number): Promise<void> {
  await lchown(folder, owner, owner);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const name = path.join(folder, entry.name);
    if (entry.isDirectory()) await give(name, owner);
    else await lchown(name, owner, owner);
  }
}

/** Deletes what a workspace left, whatever rights it gave its folders. */
export async function removeFiles(paths: WorkspacePaths): Promise<void> {
  await rm(paths.sockets, { recursive: true, force: true });
  await removeTrees([paths.base]);
}

/** Deletes folders with what a workspace's programs left in them: paths of any length, folders without write access. */
async function removeTrees(folders: readonly string[]): Promise<void> {
  const present = folders.filter((folder) => existsSync(folder));
  if (present.length === 0) return;
  // The system's programs go from folder to folder, so that a path of any length is removed.
  if (process.getuid?.() !== 0) await runLines("chmod", ["-R", "u+rwX", "--", ...present]).catch(() => undefined);
  await runLines("rm", ["-rf", "--", ...present]);
}

/** A stopped workspace is measured once, and may hold millions of files. */
const MEASURE_MS = 120_000;

/** Bytes that a stopped workspace takes on the disk, whatever rights it gave its folders. */
export async function measureFiles(paths: WorkspacePaths, signal: AbortSignal): Promise<number> {
  return await bytesOf([paths.base], { signal, timeoutMs: MEASURE_MS, asOwner: true });
}
