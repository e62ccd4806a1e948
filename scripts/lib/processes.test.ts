import { mkdtemp, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { run, type Service, startService } from "./processes.ts";

/** Says that it is ready, and ends in order when it is told to. */
const PROGRAM = `process.on("SIGTERM", () => process.exit(0)); setInterval(() => {}, 1000); console.log("up");`;

let service: Service | undefined;
afterEach(async () => await service?.stop());

async function start(mayEnd: boolean): Promise<{ service: Service; restarts: string[] }> {
  const restarts: string[] = [];
  service = await startService("it", {
    command: process.execPath,
    args: ["-e", PROGRAM],
    env: process.env,
    logFile: path.join(await mkdtemp(path.join(tmpdir(), "sluice-service-")), "log"),
    ready: (line) => line === "up",
    onRestart: (reason) => restarts.push(reason),
    mayEnd,
  });
  return { service, restarts };
}

describe("a service", () => {
  it("is started again when somebody else ended it", async () => {
    const { service, restarts } = await start(false);
    const first = service.pid();
    process.kill(first ?? 0, "SIGTERM");
    await vi.waitFor(() => expect(service.pid()).not.toBe(first), 5_000);
    expect(restarts).toEqual(["it ended with 0"]);
  });

  it("that may end is left alone when it ended in order, and started again when it crashed", async () => {
    const { service, restarts } = await start(true);
    const first = service.pid();
    process.kill(first ?? 0, "SIGKILL");
    await vi.waitFor(() => expect(service.pid()).not.toBe(first), 5_000);
    const second = service.pid();
    // Long enough for its handler to be there.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    process.kill(second ?? 0, "SIGTERM");
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(service.pid()).toBe(second);
    expect(restarts).toEqual(["it ended with SIGKILL"]);
  });
});

it("tries again when a service cannot be run", async () => {
  const command = path.join(await mkdtemp(path.join(tmpdir(), "sluice-service-")), "program");
  const restarts: string[] = [];
  const lay = () => writeFile(command, "#!/bin/sh\necho up\nexec sleep 600\n", { mode: 0o755 });
  await lay();
  service = await startService("it", {
    ...{ command, args: [], env: process.env, logFile: `${command}.log`, ready: (line) => line === "up" },
    onRestart: (reason) => restarts.push(reason),
  });
  const first = service.pid() ?? 0;
  await rm(command);
  process.kill(first, "SIGKILL");
  await vi.waitFor(() => expect(restarts.at(-1)).toMatch(/^it could not be run \(spawn .* ENOENT\)$/), 5_000);
  await lay();
  await vi.waitFor(() => expect(service?.pid() ?? first).not.toBe(first), 10_000);
});

it("keeps a service whose log cannot be written", async () => {
  const restarts: string[] = [];
  service = await startService("it", {
    command: process.execPath,
    args: ["-e", `setInterval(() => console.log("up"), 20); process.on("SIGTERM", () => process.exit(0));`],
    env: process.env,
    logFile: "/dev/full",
    ready: (line) => line === "up",
    onRestart: (reason) => restarts.push(reason),
  });
  const pid = service.pid();
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(service.pid()).toBe(pid);
  expect(restarts).toEqual([]);
});

it("hands over the output of a program without line ends in pieces", async () => {
  const lines: string[] = [];
  await run("sh", ["-c", "head -c 1000000 /dev/zero | tr '\\0' x"], { onLine: (line) => lines.push(line) });
  expect(Math.max(...lines.map(({ length }) => length))).toBe(16_384);
  expect(lines.join("").length).toBe(1_000_000);
});

it("keeps no more than a piece of what a service prints without line ends", async () => {
  const logFile = path.join(await mkdtemp(path.join(tmpdir(), "sluice-service-")), "log");
  service = await startService("it", {
    command: "sh",
    args: ["-c", "echo up; head -c 1000000 /dev/zero | tr '\\0' x; exec sleep 600"],
    env: process.env,
    logFile,
    ready: (line) => line === "up",
  });
  const logged = async () => (await readFile(logFile, "utf8")).split("\n").filter((line) => line.startsWith("x"));
  await expect.poll(async () => (await logged()).length).toBe(Math.floor(1_000_000 / 16_384));
  expect(new Set((await logged()).map(({ length }) => length))).toEqual(new Set([16_384]));
});

it("renames the log of a service that has become large", async () => {
  const logFile = path.join(await mkdtemp(path.join(tmpdir(), "sluice-service-")), "log");
  await writeFile(logFile, "");
  await truncate(logFile, 60 * 1024 ** 2);
  service = await startService("it", {
    ...{ command: process.execPath, args: ["-e", PROGRAM], env: process.env, logFile },
    ready: (line) => line === "up",
  });
  expect((await stat(`${logFile}.1`)).size).toBe(60 * 1024 ** 2);
  expect(await readFile(logFile, "utf8")).toBe("up\n");
});

describe("a program with a limit", () => {
  it("is ended with all that it started, and its last lines are told", async () => {
    // The second program holds the output open: it is waited for as well.
    const ended = run("sh", ["-c", "echo begun; sleep 600 & wait"], { limit: 1 });
    await expect(ended).rejects.toThrow("sh was ended after 1 s:\nbegun");
  });

  it("ends with its program, although one in the background keeps the output open", async () => {
    const lines: string[] = [];
    await run("sh", ["-c", "sleep 600 & echo $!"], { onLine: (line) => lines.push(line) });
    process.kill(Number(lines[0]), "SIGKILL");
  });

  it("that ends before it is as any other", async () => {
    await run("true", [], { limit: 60 });
    await expect(run("sh", ["-c", "exit 3"], { limit: 60 })).rejects.toThrow("sh ended with 3");
  });
});
