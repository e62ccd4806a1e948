/** Real workspaces that take more than their size; the machine is asked for little more than the limit. */
import { stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { runCode } from "#server/jupyter/run-code.ts";
import { waitForServer } from "#server/jupyter/wait-for-server.ts";
import type { Observation } from "#server/launchers/launcher.ts";
import { aWorkspaceSpec } from "#server/launchers/testing.ts";
import { logger } from "#server/log.ts";
import { MAX_LOG_BYTES } from "./bounded-log.ts";
import { LocalLauncher } from "./local-launcher.ts";
import { makeTestState, type TestState } from "./testing.ts";
import { workspacePaths } from "./workspace-files.ts";

const MIB = 1024 ** 2;
const SIZE = { cpuMilli: 1000, memoryBytes: 384 * MIB };

let state: TestState;
let launcher: LocalLauncher;
let watch: { stop: () => Promise<void> };
const silent = { started: () => undefined, done: () => undefined, log: () => undefined };
const signal = new AbortController().signal;

beforeAll(async () => {
  state = await makeTestState();
  launcher = new LocalLauncher({ stateDir: state.stateDir, wheel: undefined });
  watch = launcher.watchLimits(logger("test"));
}, 240_000);
afterAll(async () => {
  await watch.stop();
  await state.drop();
});

async function launch() {
  const spec = aWorkspaceSpec({ size: SIZE });
  onTestFinished(async () => await launcher.remove(spec.id));
  const { endpoint } = await launcher.ensure(spec, silent, signal);
  const server = { endpoint, token: spec.serverToken };
  const stillRuns = async () => (await launcher.observe(spec.id)).state === "running";
  await waitForServer(server, { stillRuns, timeoutMs: 60_000, signal });
  const run = async (code: string, timeoutMs = 40_000) => await runCode(server, code, { timeoutMs });
  return { id: spec.id, run, observe: async () => await launcher.observe(spec.id) };
}

/** Starts programs that outlive their notebook and take memory, eight mebibytes at a time, two seconds later. */
const programs = (count: number, mib: number) => `import subprocess, sys
hog = """import time
time.sleep(2)
kept = []
for _ in range(${mib / 8}): kept.append(bytearray(b"x") * (8 << 20)); time.sleep(0.03)
time.sleep(60)"""
for _ in range(${count}): subprocess.Popen([sys.executable, "-I", "-S", "-c", hog], start_new_session=True)
print("started")`;

it("ends the program that takes too much memory, and keeps the workspace", async () => {
  const { run, observe } = await launch();
  expect(await run(programs(1, 480))).toBe("started");
  const restarted = async () => {
    const seen: Observation = await observe();
    return seen.state === "running" ? seen.restarted : seen;
  };
  await expect.poll(restarted, { timeout: 20_000, interval: 100 }).toMatchObject({
    cause: "program",
    sentence: expect.stringMatching(/memory limit of 384 MiB, and its largest program was ended/) as string,
  });
  expect(await run("print(6 * 7)")).toBe("42");
}, 120_000);

it("ends the workspace where files in memory and many programs take too much, and tells the reason", async () => {
  const { run, observe } = await launch();
  const files = "for name, mib in (('/dev/shm/a', 190), ('/tmp/b', 94)):\n    open(name, 'wb').write(bytes(mib << 20))";
  expect(await run(`${programs(12, 24)}\n${files}`)).toBe("started");
  await expect.poll(observe, { timeout: 20_000, interval: 100 }).toEqual({
    state: "stopped",
    reason: expect.stringMatching(/^The workspace was ended at its memory limit of 384 MiB;/) as string,
  });
}, 120_000);

it("ends the program that fills a file in memory which it never maps", async () => {
  const { run, observe } = await launch();
  const hog = `import os, time
time.sleep(2)
file = os.memfd_create("held")
for _ in range(60): os.write(file, bytes(8 << 20)); time.sleep(0.03)
time.sleep(60)`;
  const program = `[sys.executable, "-I", "-S", "-c", ${JSON.stringify(hog)}]`;
  const started = await run(`import subprocess, sys
subprocess.Popen(${program}, start_new_session=True)
print("started")`);
  expect(started).toBe("started");
  const restarted = async () => {
    const seen: Observation = await observe();
    return seen.state === "running" ? seen.restarted : seen;
  };
  await expect.poll(restarted, { timeout: 20_000, interval: 100 }).toMatchObject({ cause: "program" });
  expect(await run("print(6 * 7)")).toBe("42");
}, 120_000);

it("keeps the log of a program that prints without end within its limit", async () => {
  const { id, run } = await launch();
  const before = (await launcher.logs(id, 10)).length;
  expect(before).toBeGreaterThan(0);
  // ipykernel keeps a copy of the output that the kernel was started with: the log.
  await run("import subprocess, sys\nsubprocess.Popen(['yes', 'printed'], stdout=sys.stdout._original_stdstream_copy)");
  await expect.poll(async () => await launcher.logs(id, 1), { timeout: 10_000 }).toEqual(["printed"]);
  const { log } = workspacePaths(state.stateDir, id);
  for (let look = 0; look < 40; look++) {
    expect((await stat(log)).size).toBeLessThanOrEqual(MAX_LOG_BYTES);
    await sleep(50);
  }
  expect((await stat(log)).size).toBeGreaterThan(MAX_LOG_BYTES / 4);
}, 120_000);

it("tells programs the size, refuses tasks above the limit and gives ENOSPC for full folders", async () => {
  const { run, observe } = await launch();
  const printed = await run(`import errno, os, resource
print(os.environ["MEM_LIMIT"], os.environ["TMPDIR"], resource.getrlimit(resource.RLIMIT_NPROC)[1], os.nice(0))
for name in ("/dev/shm/full", "/tmp/full"):
    try:
        with open(name, "wb", buffering=0) as file:
            for _ in range(400): file.write(bytes(1 << 20))
    except OSError as error: print(errno.errorcode[error.errno])
    os.remove(name)
children = []
try:
    for _ in range(5000):
        pid = os.fork()
        if pid == 0: os.execv("/bin/sleep", ["sleep", "2"])
        children.append(pid)
except BlockingIOError: print("refused", 300 < len(children) <= 512)`);
  expect(printed.split("\n")).toEqual([`${SIZE.memoryBytes} /var/tmp 512 5`, "ENOSPC", "ENOSPC", "refused True"]);
  expect((await observe()).state).toBe("running");
}, 120_000);
