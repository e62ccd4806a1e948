/** Programs that fill a disk. The space is this test's figure; files, processes and signals are real. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import pino from "pino";
import { afterEach, beforeEach, expect, it } from "vitest";
import { bytesOf } from "./disk-usage.ts";
import { DiskWatch, type DiskWatched } from "./disk-watch.ts";
import { readLimitRecord } from "./limit-record.ts";
import { isAlive, processStat } from "./processes.ts";

const MIB = 1024 ** 2;
const TOTAL = 1024 * MIB;

let folder: string;
let children: ChildProcess[];
let watch: DiskWatch | undefined;
let taken: number;
let lines: string[];

const SOON = { timeout: 20_000 };

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-disk-"));
  children = [];
  taken = 0;
  lines = [];
});
afterEach(async () => {
  await watch?.stop();
  for (const child of children) child.kill("SIGKILL");
  await rm(folder, { recursive: true });
});

async function workspace(id: string, script: string): Promise<DiskWatched> {
  const home = path.join(folder, id);
  await mkdir(home);
  const child = spawn("python3", ["-I", "-S", "-c", script], { cwd: home, stdio: "ignore" });
  children.push(child);
  const pid = child.pid ?? 0;
  const { startTime = 0 } = (await processStat(pid)) ?? {};
  return { id, generation: 1, first: { pid, startTime }, folders: [home], recordFile: path.join(folder, `${id}.json`) };
}

const stateOf = (pid: number) => /^State:\s+(\w)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];

function start(running: DiskWatched[]): void {
  watch = new DiskWatch({
    ...{
      stateDir: folder,
      lookMs: 50,
      log: pino({}, { write: (line: string) => lines.push(line) }),
      running: async () => running,
    },
    readFileSystem: async () => ({ totalBytes: TOTAL, availableBytes: TOTAL - taken - (await bytesOf([folder])) }),
  });
}

/** Writes 8 MiB every 20 ms without end. */
const writer = (open: string) => `import os, time
file = ${open}
while True:
    file.write(b"x" * (8 << 20)); file.flush(); time.sleep(0.02)`;

it.each([
  ["with a name", 'open("data", "wb")'],
  [
    "in a folder that its owner may not read",
    '(lambda _: open("shut/data", "wb"))((os.mkdir("shut"), os.chmod("shut", 0o300)))',
  ],
  ["without a name", '(lambda file: (os.unlink("data"), file)[1])(open("data", "wb"))'],
])(
  "ends the workspace that wrote most, to a file %s, and continues the others",
  async (_, open) => {
    // All but 300 MiB are taken by something else: the reserve is 52 MiB.
    taken = TOTAL - 300 * MIB;
    const quiet = await workspace("quiet", "import time\nopen('small', 'w').write('x'); time.sleep(600)");
    const filler = await workspace("filler", writer(open));
    if (open.includes("unlink")) {
      // A nameless file is in no folder: the space that it takes is counted here.
      taken = TOTAL - 20 * MIB;
      await expect.poll(() => fileBytesOf(filler.first.pid), SOON).toBeGreaterThan(32 * MIB);
    }
    start([quiet, filler]);
    await expect.poll(async () => await isAlive(filler.first), SOON).toBe(false);
    const record = await readLimitRecord(filler.recordFile, 1);
    expect(record?.sentence).toMatch(
      /^The disk of this machine was almost full, and this workspace was ended\. It wrote/,
    );
    await expect.poll(() => stateOf(quiet.first.pid), SOON).toBe("S");
    expect(await isAlive(quiet.first)).toBe(true);
    await expect.poll(() => existsSync(path.join(folder, "workspaces-paused")), SOON).toBe(false);
  },
  40_000,
);

function fileBytesOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/io`, "utf8");
  return Number(/^wchar: (\d+)/m.exec(text)?.[1] ?? 0);
}

it("ends nobody when the space went elsewhere", async () => {
  taken = TOTAL - 20 * MIB;
  const quiet = await workspace("quiet", "import time\nopen('small', 'w').write('x'); time.sleep(600)");
  start([quiet]);
  await expect.poll(() => lines.join(""), SOON).toContain("no workspace wrote to it");
  expect(await isAlive(quiet.first)).toBe(true);
  await expect.poll(() => stateOf(quiet.first.pid), SOON).toBe("S");
});

it("continues workspaces that a broker has left paused", async () => {
  const quiet = await workspace("quiet", "import time\ntime.sleep(600)");
  process.kill(quiet.first.pid, "SIGSTOP");
  await writeFile(path.join(folder, "workspaces-paused"), "");
  start([quiet]);
  await expect.poll(() => stateOf(quiet.first.pid), SOON).toBe("S");
  await expect.poll(() => existsSync(path.join(folder, "workspaces-paused")), SOON).toBe(false);
});
