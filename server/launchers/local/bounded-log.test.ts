import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { type FileHandle, mkdtemp, open, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { withBoundedLog } from "./bounded-log.ts";

const KIB = 1024;

let folder: string;
let file: string;
let log: FileHandle;
let child: ChildProcess | undefined;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-log-"));
  file = path.join(folder, "log");
  log = await open(file, "w+", 0o600);
});
afterEach(async () => {
  child?.kill("SIGKILL");
  await log.close();
  await rm(folder, { recursive: true });
});

function start(script: string, maxBytes: number): ChildProcess {
  const [program = "", ...args] = withBoundedLog("python3", ["sh", "-c", script], maxBytes);
  child = spawn(program, args, { stdio: ["ignore", log.fd, log.fd] });
  return child;
}

const lines = async () => (await readFile(file, "utf8")).trim().split("\n");

it("keeps both outputs of a command and of its descendants, and the command's exit code", async () => {
  const [code] = (await once(start("echo one; (sleep 0.3; echo three) & echo two >&2; exit 3", 64 * KIB), "exit")) as [
    number,
  ];
  expect(code).toBe(3);
  await expect.poll(lines).toEqual(["one", "two", "three"]);
});

it("keeps the last lines of a program that prints without end, within the limit", async () => {
  start("i=0; while :; do i=$((i + 1)); echo $i xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done", 16 * KIB);
  let largest = 0;
  const first = async () => Number((await lines())[0]?.split(" ")[0]);
  const look = async () => {
    largest = Math.max(largest, (await stat(file)).size);
    return await first();
  };
  await expect.poll(look, { timeout: 20_000, interval: 5 }).toBeGreaterThan(2_000);
  expect(largest).toBeGreaterThan(8 * KIB - 100);
  expect(largest).toBeLessThanOrEqual(16 * KIB);
});

it("keeps the log of a program without line ends within the limit, at disk speed", async () => {
  start("exec cat /dev/zero", 16 * KIB);
  const ended = Date.now() + 500;
  while (Date.now() < ended) expect((await stat(file)).size).toBeLessThanOrEqual(16 * KIB);
});

it("gives the command no access to the log file", async () => {
  await once(start("ls -l /proc/self/fd; echo end", 64 * KIB), "exit");
  await expect.poll(async () => (await lines()).at(-1)).toBe("end");
  const listed = (await lines()).join("\n");
  expect(listed).toMatch(/ 1 -> pipe:/);
  expect(listed).not.toContain(file);
});

it("never stops a command for a full disk", async () => {
  const full = await open("/dev/full", "r+");
  const [program = "", ...args] = withBoundedLog("python3", ["sh", "-c", "yes | head -c 1000000; exit 4"]);
  child = spawn(program, args, { stdio: ["ignore", full.fd, full.fd] });
  expect(await once(child, "exit")).toEqual([4, null]);
  await full.close();
});
