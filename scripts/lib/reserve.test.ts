/** The reserve on a real disk of 64 MiB that fills up and becomes free again, and on disks of any size. */
import { execFile, spawnSync } from "node:child_process";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { reserveFile } from "#server/disk.ts";
import { keepReserve, type Reserve } from "./reserve.ts";

const MIB = 1024 ** 2;
const isMountable = spawnSync("unshare", ["--user", "--map-root-user", "--mount", "true"]).status === 0;

let stateDir: string;
let reserve: Reserve | undefined;
beforeEach(async () => {
  stateDir = await mkdtemp(path.join(tmpdir(), "sluice-reserve-"));
});
afterEach(async () => {
  await reserve?.stop();
  reserve = undefined;
  await rm(stateDir, { recursive: true, force: true });
});

const heldMib = async () => ((await stat(reserveFile(stateDir)).catch(() => undefined))?.size ?? 0) / MIB;

it("is released while space is short, and made again only when the whole reserve fits twice", async () => {
  const said: string[] = [];
  let freeMib = 100;
  // A disk of 200 MiB has a reserve of 10 MiB.
  const readFileSystem = async () => ({ availableBytes: freeMib * MIB, totalBytes: 200 * MIB });
  reserve = await keepReserve(stateDir, { say: (line) => said.push(line), lookMs: 10, readFileSystem });
  expect(await heldMib()).toBe(10);
  freeMib = 4;
  await vi.waitFor(async () => expect(await heldMib()).toBe(0));
  // What the release has freed is no reason to make the reserve again.
  freeMib = 14;
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(await heldMib()).toBe(0);
  expect(said).toEqual([expect.stringContaining("is almost full: 4 MiB left")]);
  freeMib = 20;
  await vi.waitFor(async () => expect(await heldMib()).toBe(10));
  expect(said.slice(1)).toEqual([`The disk of ${stateDir} has space again, and workspaces start.`]);
});

it("says once why the reserve cannot be kept, and ends nothing", async () => {
  const said: string[] = [];
  const readFileSystem = () => Promise.reject(new Error("statfs: input/output error"));
  reserve = await keepReserve(stateDir, { say: (line) => said.push(line), lookMs: 5, readFileSystem });
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(said).toEqual([expect.stringContaining("input/output error")]);
});

it.skipIf(!isMountable)("gives a full disk its space back before the next write", async () => {
  const program = `
    import { existsSync, rmSync, writeFileSync } from "node:fs";
    import { setTimeout as sleep } from "node:timers/promises";
    import { keepReserve } from ${JSON.stringify(path.resolve("scripts/lib/reserve.ts"))};
    const reserve = await keepReserve("/mnt", { say: (line) => console.log(line), lookMs: 20 });
    console.log(existsSync("/mnt/reserve"));
    try { writeFileSync("/mnt/filler", Buffer.alloc(1 << 27)); } catch (error) { console.log(error.code); }
    await sleep(200);
    writeFileSync("/mnt/wal", Buffer.alloc(3 << 20));
    rmSync("/mnt/filler");
    await sleep(500);
    console.log(existsSync("/mnt/reserve"));
    await reserve.stop();
  `;
  const script = `mount -t tmpfs -o size=64m none /mnt && exec "$0" --input-type=module -e "$1"`;
  const args = ["--user", "--map-root-user", "--mount", "sh", "-c", script, process.execPath, program];
  const { stdout } = await promisify(execFile)("unshare", args, { timeout: 20_000 });
  expect(stdout.trim().split("\n")).toEqual([
    "true",
    "ENOSPC",
    "The disk of /mnt is almost full: 0 MiB left. The reserve of 4 MiB is released for database and logs, and no workspace starts. Delete unneeded files, or enlarge the disk.",
    "The disk of /mnt has space again, and workspaces start.",
    "true",
  ]);
});
