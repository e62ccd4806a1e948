import { execFile, spawnSync } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, it } from "vitest";
import { reserveFile } from "#server/disk.ts";
import { takeStateDir } from "./take-state-dir.ts";

const MIB = 1024 ** 2;
const isMountable = spawnSync("unshare", ["--user", "--map-root-user", "--mount", "true"]).status === 0;

let stateDir: string;
beforeEach(async () => {
  stateDir = await mkdtemp(path.join(tmpdir(), "sluice-take-"));
});
afterEach(async () => await rm(stateDir, { recursive: true }));

const options = (freeMib: number) => ({
  say: () => undefined,
  lookMs: 20,
  readFileSystem: async () => ({ availableBytes: freeMib * MIB, totalBytes: 200 * MIB }),
});

it("refuses a second start without a change to the reserve of the first one", async () => {
  const giveBack = await takeStateDir(stateDir, options(100));
  const before = await stat(reserveFile(stateDir));
  // The second start would release the reserve: less than its half is free.
  const second = takeStateDir(stateDir, options(1));
  await expect(second).rejects.toThrow(`Sluice already runs on ${stateDir} (process ${process.pid}).`);
  await new Promise((resolve) => setTimeout(resolve, 100));
  const { ino, size } = await stat(reserveFile(stateDir));
  expect({ ino, size }).toEqual({ ino: before.ino, size: 10 * MIB });
  await giveBack();
  await (await takeStateDir(stateDir, options(100)))();
});

it("replaces the lock of a start that has ended, and leaves no other file", async () => {
  const lock = path.join(stateDir, "start.pid");
  await writeFile(lock, `${process.pid} 1`);
  const giveBack = await takeStateDir(stateDir, options(100));
  expect(await readFile(lock, "utf8")).not.toBe(`${process.pid} 1`);
  expect((await readdir(stateDir)).sort()).toEqual(["logs", "reserve", "start.pid"]);
  await giveBack();
});

it.skipIf(!isMountable)("starts on a full disk with the space of the reserve", async () => {
  const program = `
    import { existsSync, mkdirSync, writeFileSync } from "node:fs";
    import { takeStateDir } from ${JSON.stringify(path.resolve("scripts/start/take-state-dir.ts"))};
    mkdirSync("/mnt/logs");
    writeFileSync("/mnt/reserve", Buffer.alloc(4 << 20));
    try { writeFileSync("/mnt/filler", Buffer.alloc(1 << 27)); } catch (error) { console.log(error.code); }
    const giveBack = await takeStateDir("/mnt", { say: () => undefined });
    console.log(existsSync("/mnt/reserve"), existsSync("/mnt/start.pid"));
    await giveBack();
  `;
  const script = `mount -t tmpfs -o size=64m none /mnt && exec "$0" --input-type=module -e "$1"`;
  const args = ["--user", "--map-root-user", "--mount", "sh", "-c", script, process.execPath, program];
  const { stdout } = await promisify(execFile)("unshare", args, { timeout: 20_000 });
  expect(stdout.trim().split("\n")).toEqual(["ENOSPC", "false true"]);
});
