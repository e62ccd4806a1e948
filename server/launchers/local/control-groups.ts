/**
 * Control groups (cgroup v2) of local workspaces, `<base>/sluice/<id>`. The base is the root of the hierarchy when the
 * broker is root, otherwise the broker's own group where its controllers are delegated. Except for the root, a group
 * with processes cannot enable controllers for its children, so such a base moves its processes into a leaf first.
 */
import { readFileSync } from "node:fs";
import { access, mkdir, readFile, rmdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Limits } from "./limits.ts";

const CONTROLLERS = ["memory", "pids", "cpu"];
const ALL = "sluice";
const LEAF = "sluice-broker";
const PERIOD_US = 100_000;
/** The kernel refuses a shorter quota. */
const SHORTEST_QUOTA_US = 1_000;
const REMOVE_MS = 5_000;

/** The mount of the hierarchy, and the group of this process. */
export type Place = { mount: string; own: string; isRoot: boolean };

export type ControlGroups = { folder: string };

/** Changes to the hierarchy. Tests replace them: a plain folder keeps its files when a kernel would drop them. */
export type Hierarchy = {
  mkdir: (folder: string) => Promise<unknown>;
  rmdir: (folder: string) => Promise<void>;
  write: (file: string, value: string) => Promise<void>;
};

const kernel: Hierarchy = {
  mkdir: async (folder) => await mkdir(folder, { recursive: true }),
  rmdir,
  write: async (file, value) => await writeFile(file, value),
};

/** The mount of cgroup v2 and the broker's group; undefined without cgroup v2. */
export function placeOfBroker(
  mountinfo = readFileSync("/proc/self/mountinfo", "utf8"),
  cgroup = readFileSync("/proc/self/cgroup", "utf8"),
): Place | undefined {
  const own = /^0::(.*)$/m.exec(cgroup)?.[1];
  for (const line of mountinfo.split("\n")) {
    const [before = "", after = ""] = line.split(" - ");
    const [, , , root, mount] = before.split(" ");
    if (!after.startsWith("cgroup2 ") || root === undefined || mount === undefined || own === undefined) continue;
    // A container may mount only a part of the hierarchy: paths begin at that part.
    const below = root === "/" ? own : own === root || own.startsWith(`${root}/`) ? own.slice(root.length) : undefined;
    if (below !== undefined) return { mount, own: below === "" ? "/" : below, isRoot: process.getuid?.() === 0 };
  }
  return undefined;
}

/** Makes the group of all workspaces and enables its controllers, or returns what is missing. */
export async function prepareControlGroups(
  place: Place | undefined,
  tree: Hierarchy = kernel,
): Promise<ControlGroups | { missing: string }> {
  if (place === undefined) return { missing: "cgroup v2 is not mounted" };
  const own = path.resolve(place.mount, `.${place.own}`);
  // After a restart of the service's main process alone, the broker runs in the leaf of the run before.
  const service = path.basename(own) === LEAF ? path.dirname(own) : own;
  let missing = "";
  for (const base of new Set([...(place.isRoot ? [place.mount] : []), service])) {
    try {
      return await prepareBelow(tree, base, base === service);
    } catch (error) {
      missing = reasonOf(error, base);
    }
  }
  return { missing };
}

function reasonOf(error: unknown, base: string): string {
  if (isCode(error, "EACCES") || isCode(error, "EPERM"))
    return `the control group ${base} is not delegated to the user of the broker`;
  if (isCode(error, "EROFS")) return `the control group ${base} is mounted read-only`;
  return error instanceof Error ? error.message : String(error);
}

async function prepareBelow(tree: Hierarchy, base: string, mayEmpty: boolean): Promise<ControlGroups> {
  const offered = (await readFile(path.join(base, "cgroup.controllers"), "utf8")).split(/\s+/);
  const lacking = CONTROLLERS.filter((name) => !offered.includes(name));
  if (lacking.length > 0) throw new Error(`cgroup v2 offers no controller ${lacking.join(", ")} in ${base}`);
  const folder = path.join(base, ALL);
  await tree.mkdir(folder);
  try {
    await enable(tree, base);
  } catch (error) {
    if (!mayEmpty || !isCode(error, "EBUSY")) throw error;
    await emptyInto(tree, base, path.join(base, LEAF));
    await enable(tree, base);
  }
  await enable(tree, folder);
  await tryOut(tree, folder);
  return { folder };
}

/** All controllers in one write: the kernel takes all of them or none. */
async function enable(tree: Hierarchy, group: string): Promise<void> {
  await tree.write(path.join(group, "cgroup.subtree_control"), CONTROLLERS.map((name) => `+${name}`).join(" "));
}

/** Moves every process of a group into a leaf; repeats because a process may fork meanwhile. */
async function emptyInto(tree: Hierarchy, group: string, leaf: string): Promise<void> {
  await tree.mkdir(leaf);
  for (let round = 0; round < 10; round++) {
    const pids = (await readFile(path.join(group, "cgroup.procs"), "utf8")).split("\n").filter((pid) => pid !== "");
    if (pids.length === 0) return;
    for (const pid of pids) {
      await tree.write(path.join(leaf, "cgroup.procs"), pid).catch((error: unknown) => {
        // The process has ended.
        if (!isCode(error, "ESRCH")) throw error;
      });
    }
  }
}

/** Makes a child group to check that the controllers are enabled. */
async function tryOut(tree: Hierarchy, folder: string): Promise<void> {
  const child = path.join(folder, `try-${process.pid}`);
  await tree.mkdir(child);
  try {
    for (const name of ["memory.max", "pids.max", "cpu.max"]) await access(path.join(child, name));
  } finally {
    await tree.rmdir(child);
  }
}

/** Files of a workspace's group with their values, in the order of writing. */
export function settingsOf({ memoryBytes, tasks, cpuMilli }: Limits): [file: string, value: string][] {
  return [
    ["memory.max", String(memoryBytes)],
    ["memory.swap.max", "0"],
    ["memory.oom.group", "1"],
    ["pids.max", String(tasks)],
    // 100 for each core; 100 is the kernel's default.
    ["cpu.weight", String(Math.min(10_000, Math.max(1, Math.round(cpuMilli / 10))))],
    ["cpu.max", `${Math.max(SHORTEST_QUOTA_US, cpuMilli * (PERIOD_US / 1000))} ${PERIOD_US}`],
  ];
}

/** Makes a new group for a workspace, and ends all processes of its earlier group. */
export async function makeGroup(
  { folder }: ControlGroups,
  { id, limits }: { id: string; limits: Limits },
  tree: Hierarchy = kernel,
): Promise<string> {
  const group = path.join(folder, id);
  await removeGroup(group, tree);
  await tree.mkdir(group);
  for (const [file, value] of settingsOf(limits)) {
    await tree.write(path.join(group, file), value).catch((error: unknown) => {
      // Without swap accounting the file does not exist.
      if (file !== "memory.swap.max" || !(isCode(error, "ENOENT") || isCode(error, "EACCES"))) throw error;
    });
  }
  return group;
}

/** The command line that joins a group and then becomes `command`: no process of the command starts outside. */
export function inGroup(group: string, command: string[]): string[] {
  return ["sh", "-c", 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"', "sluice", group, ...command];
}

/** Ends all processes of a group and removes the group. A missing group is no error. */
export async function removeGroup(group: string, tree: Hierarchy = kernel): Promise<void> {
  // Since Linux 5.14; before, the end of the sandbox's first process has ended all others.
  await access(path.join(group, "cgroup.kill")).then(
    async () => await tree.write(path.join(group, "cgroup.kill"), "1"),
    () => undefined,
  );
  for (let waited = 0; ; waited += 20) {
    try {
      return await tree.rmdir(group);
    } catch (error) {
      if (isCode(error, "ENOENT")) return;
      if (!isCode(error, "EBUSY") || waited >= REMOVE_MS) throw error;
    }
    await sleep(20);
  }
}

/** Whether the kernel has ended processes of the group for memory. */
export async function ranOutOfMemory(group: string): Promise<boolean> {
  const events = await readFile(path.join(group, "memory.events"), "utf8").catch(() => "");
  return Number(/^oom_kill (\d+)$/m.exec(events)?.[1] ?? 0) > 0;
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
