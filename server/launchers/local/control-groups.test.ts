/** On a plain folder that stands for the kernel's hierarchy: contents and order of what is written. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type Hierarchy,
  inGroup,
  makeGroup,
  placeOfBroker,
  prepareControlGroups,
  ranOutOfMemory,
  removeGroup,
  settingsOf,
} from "./control-groups.ts";
import { limitsOf } from "./limits.ts";

const GIB = 1024 ** 3;
const ENABLE = "+memory +pids +cpu";
const limits = limitsOf({ cpuMilli: 1500, memoryBytes: GIB });

let mount: string;
let done: string[];
/** Groups whose own processes keep them from handing controllers on, as in the kernel. */
let busy: Set<string>;

const named = (file: string) => path.relative(mount, file) || ".";

/** Does what the kernel does: fills a new group with files, refuses controllers to a group with processes. */
const fake: Hierarchy = {
  mkdir: async (folder) => {
    done.push(`mkdir ${named(folder)}`);
    await mkdir(folder, { recursive: true });
    for (const file of ["memory.max", "pids.max", "cpu.max"]) await writeFile(path.join(folder, file), "max");
  },
  rmdir: async (folder) => {
    done.push(`rmdir ${named(folder)}`);
    await readFile(path.join(folder, "memory.max")).catch(() => {
      throw Object.assign(new Error("gone"), { code: "ENOENT" });
    });
    await rm(folder, { recursive: true });
  },
  write: async (file, value) => {
    done.push(`${named(file)} ${value}`);
    if (file.endsWith("subtree_control") && busy.has(path.dirname(file)))
      throw Object.assign(new Error("EBUSY: resource busy"), { code: "EBUSY" });
    if (file.endsWith("cgroup.procs")) {
      const from = path.join(path.dirname(path.dirname(file)), "cgroup.procs");
      const left = (await readFile(from, "utf8")).split("\n").filter((pid) => pid !== value);
      await writeFile(from, left.join("\n"));
      if (left.every((pid) => pid === "")) busy.delete(path.dirname(from));
    }
    await writeFile(file, value);
  },
};

async function group(name: string, controllers = "cpuset cpu io memory pids"): Promise<string> {
  const folder = path.join(mount, name);
  await mkdir(folder, { recursive: true });
  await writeFile(path.join(folder, "cgroup.controllers"), `${controllers}\n`);
  return folder;
}

beforeEach(async () => {
  mount = await mkdtemp(path.join(tmpdir(), "sluice-cgroup-"));
  done = [];
  busy = new Set();
});
afterEach(async () => await rm(mount, { recursive: true }));

describe("the control groups of local workspaces", () => {
  it("are below the root when the broker is root", async () => {
    await group(".");
    await group("system.slice/sluice.service");
    const place = { mount, own: "/system.slice/sluice.service", isRoot: true };
    expect(await prepareControlGroups(place, fake)).toEqual({ folder: path.join(mount, "sluice") });
    expect(done).toEqual([
      "mkdir sluice",
      `cgroup.subtree_control ${ENABLE}`,
      `sluice/cgroup.subtree_control ${ENABLE}`,
      `mkdir sluice/try-${process.pid}`,
      `rmdir sluice/try-${process.pid}`,
    ]);
  });

  it("are below the broker's own group without root, whose processes first move into a leaf", async () => {
    const own = await group("user.slice/sluice.service");
    await writeFile(path.join(own, "cgroup.procs"), "10\n11\n");
    busy.add(own);
    const place = { mount, own: "/user.slice/sluice.service", isRoot: false };
    expect(await prepareControlGroups(place, fake)).toEqual({ folder: path.join(own, "sluice") });
    expect(done.map((each) => each.replace("user.slice/sluice.service/", ""))).toEqual([
      "mkdir sluice",
      `cgroup.subtree_control ${ENABLE}`,
      "mkdir sluice-broker",
      "sluice-broker/cgroup.procs 10",
      "sluice-broker/cgroup.procs 11",
      `cgroup.subtree_control ${ENABLE}`,
      `sluice/cgroup.subtree_control ${ENABLE}`,
      `mkdir sluice/try-${process.pid}`,
      `rmdir sluice/try-${process.pid}`,
    ]);
  });

  it("are found again after a restart from within the leaf", async () => {
    const own = await group("sluice.service");
    await group("sluice.service/sluice-broker", "");
    const place = { mount, own: "/sluice.service/sluice-broker", isRoot: false };
    expect(await prepareControlGroups(place, fake)).toEqual({ folder: path.join(own, "sluice") });
  });

  it("are reported as missing where the controllers are not offered", async () => {
    await group(".", "hugetlb");
    const missing = await prepareControlGroups({ mount, own: "/", isRoot: true }, fake);
    expect(missing).toEqual({ missing: expect.stringContaining("no controller memory, pids, cpu") as string });
    expect(await prepareControlGroups(undefined)).toEqual({ missing: "cgroup v2 is not mounted" });
    expect(done).toEqual([]);
  });

  it.each([
    ["EACCES", "is not delegated to the user of the broker"],
    ["EROFS", "is mounted read-only"],
  ])("are reported as missing where the kernel refuses with %s", async (code, reason) => {
    const own = await group("user.slice/session.scope");
    const refusing = { ...fake, mkdir: async () => await Promise.reject(Object.assign(new Error(code), { code })) };
    const missing = await prepareControlGroups({ mount, own: "/user.slice/session.scope", isRoot: false }, refusing);
    expect(missing).toEqual({ missing: `the control group ${own} ${reason}` });
  });

  it("hold a workspace to its size, and go with the workspace", async () => {
    const made = await makeGroup({ folder: mount }, { id: "ws-a", limits }, fake);
    expect(made).toBe(path.join(mount, "ws-a"));
    expect(done).toEqual(["rmdir ws-a", "mkdir ws-a", ...settingsOf(limits).map((each) => `ws-a/${each.join(" ")}`)]);
    expect(settingsOf(limits)).toEqual([
      ["memory.max", "1073741824"],
      ["memory.swap.max", "0"],
      ["memory.oom.group", "1"],
      ["pids.max", "512"],
      ["cpu.weight", "150"],
      ["cpu.max", "150000 100000"],
    ]);
    await writeFile(path.join(made, "cgroup.kill"), "");
    done = [];
    await removeGroup(made, fake);
    expect(done).toEqual(["ws-a/cgroup.kill 1", "rmdir ws-a"]);
    await removeGroup(made, fake);
  });

  it("tell that the kernel ended a workspace for memory", async () => {
    expect(await ranOutOfMemory(mount)).toBe(false);
    await writeFile(path.join(mount, "memory.events"), "low 0\nhigh 0\nmax 7\noom 1\noom_kill 0\n");
    expect(await ranOutOfMemory(mount)).toBe(false);
    await writeFile(path.join(mount, "memory.events"), "low 0\nmax 7\noom 1\noom_kill 3\noom_group_kill 1\n");
    expect(await ranOutOfMemory(mount)).toBe(true);
  });

  it("are joined before the first program of the workspace starts", () => {
    expect(inGroup("/g", ["unshare", "sh"])).toEqual([
      ...["sh", "-c", 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"', "sluice"],
      ...["/g", "unshare", "sh"],
    ]);
  });
});

describe("the place of the broker in the hierarchy", () => {
  const v2 = "31 24 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

  it("is read from /proc, on a hybrid machine too", () => {
    const hybrid = `${"30 24 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"}${v2}`;
    const cgroup = "8:pids:/other\n0::/user.slice/a.service\n";
    expect(placeOfBroker(hybrid, cgroup)).toMatchObject({ mount: "/sys/fs/cgroup", own: "/user.slice/a.service" });
  });

  it("is below the part of the hierarchy that a container mounts", () => {
    const part = v2.replace("0:27 /", "0:27 /docker/abc");
    expect(placeOfBroker(part, "0::/docker/abc/leaf\n")?.own).toBe("/leaf");
    expect(placeOfBroker(part, "0::/docker/abc\n")?.own).toBe("/");
    expect(placeOfBroker(part, "0::/docker/other\n")).toBeUndefined();
  });

  it("is unknown without cgroup v2", () => {
    expect(
      placeOfBroker("30 24 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n", "8:pids:/\n"),
    ).toBeUndefined();
  });
});
