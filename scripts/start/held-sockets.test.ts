import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { get } from "node:http";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Service, startService } from "#scripts/lib/processes.ts";
import { type HeldSockets, holdPorts } from "./held-sockets.ts";

/** Answers with its process id, and with the descriptors that a program of its own inherits. */
const SERVICE = `
  import { spawnSync } from "node:child_process";
  import { createServer } from "node:http";
  import { listen } from "#server/listen.ts";
  const server = createServer((request, response) => {
    const inherited = spawnSync("sh", ["-c", "ls -l /proc/$$/fd"], { encoding: "utf8" }).stdout;
    response.end(JSON.stringify({ pid: process.pid, sockets: inherited.match(/[3-9] -> socket/g) }));
  });
  await listen(server, { port: Number(process.env.PORT), host: "127.0.0.1" });
  console.log("ready");
`;

let folder: string;
let sockets: HeldSockets | undefined;
let service: Service | undefined;
let other: ChildProcess | undefined;

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-held-"));
});
afterEach(async () => {
  await service?.stop();
  sockets?.close();
  other?.kill("SIGKILL");
  service = sockets = other = undefined;
  await rm(folder, { recursive: true, force: true });
});

const hold = async (port: number, hosts = ["127.0.0.1"]) => {
  sockets = await holdPorts([{ port, variable: "SLUICE_PORTAL_PORT", hosts }], folder);
  return { sockets, port: sockets.ports[0] ?? 0 };
};

async function startOn(held: HeldSockets, port: number): Promise<Service> {
  const { descriptors, variable } = held.inheritanceOf(port);
  service = await startService("it", {
    command: "setpriv",
    args: ["--pdeathsig", "TERM", "--", process.execPath, "--input-type=module", "-e", SERVICE],
    env: { ...process.env, PORT: String(port), SLUICE_LISTEN_FDS: variable },
    logFile: path.join(folder, "log"),
    ready: (line) => line === "ready",
    descriptors,
  });
  return service;
}

async function ask(port: number, host = "127.0.0.1"): Promise<{ pid: number; sockets: string[] | null }> {
  return await new Promise((resolve, reject) => {
    get({ port, host, agent: false }, (response) => {
      let body = "";
      response.on("data", (chunk: Buffer) => {
        body += chunk.toString();
      });
      response.on("end", () => resolve(JSON.parse(body) as { pid: number; sockets: string[] | null }));
    }).once("error", reject);
  });
}

/** The code of the error that another program gets on the port. */
async function codeOfListening(port: number, host: string): Promise<string | undefined> {
  return await new Promise((resolve) => {
    const server: Server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code));
    server.listen(port, host, () => server.close(() => resolve(undefined)));
  });
}

/** Another program that listens on a free port. */
async function startOther(env: NodeJS.ProcessEnv = process.env, ms = 600_000): Promise<number> {
  const program = `const other = require("net").createServer();
    other.listen(0, "127.0.0.1", () => console.log(other.address().port));
    setTimeout(() => process.exit(), ${ms})`;
  other = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"], env });
  const [chunk] = (await once(other.stdout ?? other, "data")) as [Buffer];
  return Number(chunk.toString());
}

describe("held sockets", () => {
  it("keep the port and the connections of a process that was killed", async () => {
    const { sockets, port } = await hold(0, ["127.0.0.1", "::1"]);
    const running = await startOn(sockets, port);
    const { pid } = await ask(port);
    expect(pid).toBe(running.pid());
    process.kill(pid, "SIGKILL");
    await expect.poll(() => codeOf(pid)).toBe("ESRCH");
    const waiting = [ask(port), ask(port, "::1")];
    for (const host of ["127.0.0.1", "0.0.0.0", "::1", "::"]) {
      expect(await codeOfListening(port, host), host).toBe("EADDRINUSE");
    }
    const answers = await Promise.all(waiting);
    expect(answers.map((answer) => answer.pid)).toEqual([running.pid(), running.pid()]);
    expect(running.pid()).not.toBe(pid);
  });

  it("let connections wait before the first process listens", async () => {
    const { sockets, port } = await hold(0);
    const waiting = ask(port);
    await startOn(sockets, port);
    expect((await waiting).pid).toBe(service?.pid());
  });

  it("do not reach the programs that a process starts", async () => {
    const { sockets, port } = await hold(0);
    await startOn(sockets, port);
    expect((await ask(port)).sockets).toBeNull();
  });
});

describe("a taken port", () => {
  it("is an error that names the process and the setting", async () => {
    const port = await startOther();
    const refused = hold(port);
    await expect(refused).rejects.toThrow(`is taken by process ${other?.pid} (${process.execPath} -e const other`);
    await expect(refused).rejects.toThrow("End that process, or set SLUICE_PORTAL_PORT to another port.");
  });

  it("is waited for while a process of the same state directory ends", async () => {
    const port = await startOther({ ...process.env, SLUICE_STATE_DIR: folder }, 1_500);
    expect((await hold(port)).port).toBe(port);
  });
});

function codeOf(pid: number): string | undefined {
  try {
    process.kill(pid, 0);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
}
