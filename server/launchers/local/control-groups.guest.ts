/**
 * Control groups of a real kernel. The guest runs this file twice: as root, and as an ordinary user whose own group is
 * delegated.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, before, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type ControlGroups,
  inGroup,
  makeGroup,
  placeOfBroker,
  prepareControlGroups,
  ranOutOfMemory,
  removeGroup,
} from "./control-groups.ts";
import { enforcedLimits } from "./enforced-limits.ts";
import { type Limits, limitsOf } from "./limits.ts";
import { probeSandbox, sandboxCommand, workspaceUid } from "./sandbox.ts";

const MIB = 1024 ** 2;
const ID = "ws-guest";
const isRoot = process.getuid?.() === 0;
const limits: Limits = { ...limitsOf({ cpuMilli: 500, memoryBytes: 128 * MIB }), tasks: 40 };

/** Takes 400 MiB and then says so. */
const HOGS = {
  "anonymous memory": "held = b'x' * (400 << 20)",
  "files in memory that nobody maps": `import os
held = os.memfd_create("held")
for _ in range(400): os.write(held, b"x" * (1 << 20))`,
  "anonymous memory that is shared and unmapped": `import mmap
held = mmap.mmap(-1, 400 << 20)
for at in range(0, 400 << 20, 1 << 20):
    held[at:at + (1 << 20)] = b"x" * (1 << 20)
    held.madvise(mmap.MADV_DONTNEED)`,
};

let groups: ControlGroups;

before(async () => {
  const prepared = await prepareControlGroups(placeOfBroker());
  if ("missing" in prepared) throw new Error(prepared.missing);
  groups = prepared;
});

afterEach(async () => await removeGroup(path.join(groups.folder, ID)));

const read = (file: string) => readFileSync(path.join(groups.folder, ID, file), "utf8").trim();
const processes = () => read("cgroup.procs").split("\n").filter(Boolean);

/** Runs a command as a workspace's, in a new group. */
async function start(command: string[], own: Limits = limits) {
  const group = await makeGroup(groups, { id: ID, limits: own });
  const [program = "", ...args] = inGroup(group, command);
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (part: Buffer) => (printed += part.toString()));
  const ended = once(child, "close").then(([code, signal]) => ({ code: code as unknown, signal: signal as unknown }));
  return { group, ended, printed: () => printed };
}

/** Waits for a state of the kernel; the processor is emulated. */
async function until(isTrue: () => boolean): Promise<void> {
  for (let waited = 0; !isTrue(); waited += 50) {
    assert.ok(waited < 60_000, `still waiting: ${isTrue.toString()}`);
    await sleep(50);
  }
}

const python = (program: string) => ["python3", "-I", "-S", "-c", program];

it("lie where this user may make them", () => {
  const { mount, own } = placeOfBroker() ?? { mount: "", own: "" };
  if (isRoot) assert.equal(groups.folder, path.join(mount, "sluice"));
  else {
    // A group with processes cannot enable controllers: this process has moved into a leaf of its own group.
    assert.equal(own, "/delegated/sluice-broker");
    assert.equal(groups.folder, path.join(mount, "delegated", "sluice"));
  }
  const told = enforcedLimits({ groups, mode: probeSandbox().mode, isWatching: true });
  assert.equal(told.by, "control-group");
  assert.match(told.sentence, /cgroup v2/);
});

it("are found again from the leaf after a restart", async () => {
  assert.deepEqual(await prepareControlGroups(placeOfBroker()), groups);
});

for (const [name, hog] of Object.entries(HOGS)) {
  it(`end a program that fills ${name} above the limit, and the rest with it`, async () => {
    const { group, ended, printed } = await start([
      "sh",
      "-c",
      'sleep 1000 & "$@"; echo survived',
      "run",
      ...python(hog),
    ]);
    assert.equal((await ended).signal, "SIGKILL");
    assert.doesNotMatch(printed(), /survived/);
    assert.equal(await ranOutOfMemory(group), true);
    await until(() => processes().length === 0);
  });
}

it("leave a program alone that stays below the limit", async () => {
  const { group, ended, printed } = await start(python("held = b'x' * (64 << 20); print(len(held) >> 20)"));
  assert.equal((await ended).code, 0);
  assert.equal(printed().trim(), "64");
  assert.equal(await ranOutOfMemory(group), false);
});

it("refuse processes above the limit", async () => {
  const program = `import os, time
count = 0
try:
    while count < 100:
        if os.fork() == 0:
            time.sleep(1000)
        count += 1
except BlockingIOError:
    print("refused after", count, flush=True)
os.kill(0, 9)`;
  const { ended, printed } = await start(["setsid", "--wait", ...python(program)]);
  await ended;
  const refusedAfter = Number(/refused after (\d+)/.exec(printed())?.[1]);
  assert.ok(refusedAfter > 30 && refusedAfter < limits.tasks, printed());
  assert.match(read("pids.events"), /^max [1-9]/);
});

it("hold processor time to the size", async () => {
  const busy = "import time\nend = time.monotonic() + 3\nwhile time.monotonic() < end: pass";
  const began = Date.now();
  const { ended } = await start(python(busy));
  assert.equal(read("cpu.weight"), "50");
  assert.equal(read("cpu.max"), "50000 100000");
  await ended;
  const statOf = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, "m").exec(read("cpu.stat"))?.[1]);
  assert.ok(statOf("nr_throttled") > 0, read("cpu.stat"));
  // Half a core, also while the interpreter starts.
  const elapsedUs = (Date.now() - began) * 1000;
  assert.ok(statOf("usage_usec") < 0.6 * elapsedUs, `${elapsedUs} us: ${read("cpu.stat")}`);
});

it("hold a whole sandbox, and end it when they are removed", async () => {
  const { mode, reason } = probeSandbox();
  assert.deepEqual(mode, { asRoot: isRoot, userNamespace: true }, reason);
  const root = mkdtempSync(path.join(tmpdir(), "sluice-guest-root-"));
  const command = ["sh", "-c", "echo started; sleep 1000 & wait"];
  const sandbox = sandboxCommand({ mode, root, uid: workspaceUid(ID), mounts: [], limits, command });
  const { group, ended, printed } = await start(sandbox);
  await until(() => printed().includes("started"));
  assert.ok(processes().length >= 2);
  await removeGroup(group);
  assert.equal((await ended).signal, "SIGKILL");
  assert.equal(existsSync(group), false);
});

it("charge the files of a sandbox in memory to its workspace", async () => {
  const { mode, reason } = probeSandbox();
  assert.ok(mode, reason);
  const root = mkdtempSync(path.join(tmpdir(), "sluice-guest-root-"));
  const fill = "for name in ('/dev/shm/a', '/tmp/b'):\n    open(name, 'wb').write(b'x' * (100 << 20))";
  const larger = { ...limits, shmBytes: 110 * MIB, tmpBytes: 110 * MIB };
  const command = python(fill);
  const sandbox = sandboxCommand({ mode, root, uid: workspaceUid(ID), mounts: [], limits: larger, command });
  const { group, ended } = await start(sandbox, larger);
  await ended;
  assert.equal(await ranOutOfMemory(group), true);
});

it("are gone when no workspace runs", () => {
  const left = readdirSync(groups.folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  assert.deepEqual(left, []);
});
