/** Two real workspaces; a notebook in the first goes after everything that is not its own. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Server } from "node:net";
import { networkInterfaces } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { authSecret } from "#server/auth/keys.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "#server/db/embedded.ts";
import { egressRefusals, gpuServers } from "#server/db/schema/index.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { type EgressService, startEgress } from "#server/egress/egress-service.ts";
import { env, resetEnv } from "#server/env.ts";
import { addressOf } from "#server/jupyter/endpoint.ts";
import { runCode } from "#server/jupyter/run-code.ts";
import { waitForServer } from "#server/jupyter/wait-for-server.ts";
import { aWorkspaceSpec } from "#server/launchers/testing.ts";
import { logger } from "#server/log.ts";
import { loadSigner } from "#server/services/lease/signer.ts";
import { makeWorkspace, makeWorld } from "#server/services/testing.ts";
import { LocalLauncher } from "./local-launcher.ts";
import { processStat } from "./processes.ts";
import { makeTestState, type TestState } from "./testing.ts";
import { workspacePaths } from "./workspace-files.ts";

type Report = {
  got: Record<string, string>;
  found: string[];
  variables: string[];
  control: Record<string, unknown>;
};

let state: TestState;
let postgres: EmbeddedPostgres;
let launcher: LocalLauncher;
let egress: EgressService;
let database: TestDatabase;
/** Takes connections on every address of the host. */
let listener: Server;
/** Stands at the address of a GPU server of the pool. */
let gpud: Server;
let abstract: Server;
let own: Awaited<ReturnType<typeof launch>>;
let other: Awaited<ReturnType<typeof launch>>;

const ABSTRACT = `@sluice-isolation-${process.pid}`;
const hostAddresses = Object.values(networkInterfaces())
  .flatMap((each) => each ?? [])
  .filter(({ family }) => family === "IPv4")
  .map(({ address }) => address);

/** A kernel as Jupyter starts it by itself, talking until its input ends. */
const TALKER = `import sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel()
client.execute(sys.argv[1])
print("talking", flush=True)
sys.stdin.read()
manager.shutdown_kernel(now=True)`;

/** Where a secret could lie; the rest of the sandbox is the system's and the environment's read-only files. */
const EVERYWHERE = [
  "/etc",
  "/home",
  "/run",
  "/tmp",
  "/opt/sluice/packages",
  "/opt/sluice/jupyter",
  "/var",
  "/root",
  "/dev/shm",
];

/** What a kernel of somebody else prints while the intruder listens. */
const SPOKEN = "an answer for its owner alone";
const TALK = `import time\nfor _ in range(900):\n    print(${JSON.stringify(SPOKEN)}, flush=True)\n    time.sleep(0.1)`;

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

const silent = { started: () => undefined, done: () => undefined, log: () => undefined };
const signal = new AbortController().signal;

async function launch(id: string) {
  const spec = aWorkspaceSpec({ id, generation: 1, variables: { GCONV_PATH: "/home/user/gconv" } });
  const { endpoint } = await launcher.ensure(spec, silent, signal);
  const server = { endpoint, token: spec.serverToken };
  const stillRuns = async () => (await launcher.observe(spec.id)).state === "running";
  await waitForServer(server, { stillRuns, timeoutMs: 60_000, signal });
  return { ...spec, server, paths: workspacePaths(state.stateDir, spec.id) };
}

beforeAll(async () => {
  state = await makeTestState();
  process.env.SLUICE_STATE_DIR = state.stateDir;
  process.env.DATABASE_URL = "postgres://in-the-brokers-environment";
  resetEnv();
  postgres = await startEmbeddedPostgres(state.stateDir);
  await Promise.all([authSecret(), loadSigner(env())]);
  launcher = new LocalLauncher({ stateDir: state.stateDir, wheel: undefined });
  database = await createTestDatabase();
  egress = await startEgress(database.db, { stateDir: state.stateDir, log: logger("test"), environment: process.env });
  listener = createServer((socket) => socket.end("the host")).listen(0, "0.0.0.0");
  abstract = createServer((socket) => socket.end()).listen({ path: ABSTRACT.replace("@", "\0") });
  const world = await makeWorld(database.db);
  const owner = world.member;
  const ids = await Promise.all([makeWorkspace(world, { owner }), makeWorkspace(world, { owner })]);
  gpud = createServer((socket) => socket.end()).listen(0, "127.0.0.1");
  await Promise.all([listener, gpud].map(async (server) => server.listening || (await once(server, "listening"))));
  await database.db.update(gpuServers).set({ dataAddress: `tls://127.0.0.1:${portOf(gpud)}` });
  [own, other] = await Promise.all([launch(ids[0].id), launch(ids[1].id)]);
  await writeFile(path.join(other.paths.home, "diary.txt"), "a secret of the other home");
}, 240_000);

afterAll(async () => {
  for (const workspace of [own, other]) await launcher.remove(workspace.id);
  listener.close();
  gpud.close();
  abstract.close();
  await egress.close();
  await database.drop();
  await postgres.stop();
  await state.drop();
});

async function intruder(credential: string, search: string[]): Promise<string> {
  const at = (...names: string[]) => path.join(state.stateDir, ...names);
  const targets = {
    files: {
      "the database password": at("pg", "password"),
      "the signing key": at("keys", "session-signing.jwk"),
      "the session secret": at("keys", "auth-secret"),
      "another home": path.join(other.paths.home, "diary.txt"),
      "another workspace's credential": path.join(other.paths.run, "credential"),
      "the product's own code": path.resolve("package.json"),
    },
    state: state.stateDir,
    broker: process.pid,
    other: addressOf(other.server.endpoint).socketPath,
    listening: portOf(listener),
    gpud: `127.0.0.1:${portOf(gpud)}`,
    addresses: hostAddresses,
    abstract: ABSTRACT,
    spoken: SPOKEN,
    database: postgres.socket,
    credential,
    search,
    secrets: {
      "database password": await readFile(at("pg", "password"), "utf8"),
      "session secret": await authSecret(),
      "signing key": (JSON.parse(await readFile(at("keys", "session-signing.jwk"), "utf8")) as { d: string }).d,
      "other token": other.serverToken,
      "other credential": other.credential,
      "other diary": "a secret of the other home",
    },
    variables: ["DATABASE_URL", "SLUICE_STATE_DIR", "SLUICE_AUTH_SECRET", "SLUICE_SIGNING_KEY", "JUPYTER_TOKEN"],
  };
  const program = await readFile(path.join(import.meta.dirname, "intruder.py"), "utf8");
  return program.replace("@TARGETS@", JSON.stringify(targets));
}

describe("a notebook that goes after what is not its own", () => {
  it("gets nothing, while its own things are there", async () => {
    const talk = new AbortController();
    const heard = runCode(other.server, TALK, { timeoutMs: 90_000, signal: talk.signal }).catch(() => "called off");
    const printed = await runCode(own.server, await intruder("/run/sluice/credential", EVERYWHERE), {
      timeoutMs: 90_000,
    });
    talk.abort();
    await heard;
    const report = JSON.parse(printed.split("\n").at(-1) ?? "") as Report;
    expect(Object.entries(report.got).filter(([, result]) => result.startsWith("YES"))).toEqual([]);
    expect(Object.keys(report.got).length).toBeGreaterThan(25);
    expect(report.found).toEqual([]);
    expect(report.variables).toEqual([]);
    expect(report.control).toMatchObject({
      "own credential": own.credential,
      "egress proxy listens": true,
      // The egress proxy leads somewhere, so that what it refuses is refused by a rule.
      "GPU server by the egress proxy": "HTTP/1.1 200 Connection established",
      ...{ uid: 1000, "home writable": true },
    });
    // Its own few processes and nothing of the machine's.
    expect(report.control.processes).toBeLessThan(15);
    await egress.close();
    const refused = await database.db.select().from(egressRefusals).where(eq(egressRefusals.workspaceId, own.id));
    expect(refused.map(({ host }) => host)).toEqual(expect.arrayContaining(["localhost", "169.254.169.254"]));
    expect(refused.filter(({ reason }) => !reason.includes("which is closed"))).toEqual([]);
  }, 120_000);

  it("cannot have an interpreter of its environment run on the host by the start of a workspace", async () => {
    const { pid } = JSON.parse(await readFile(own.paths.handle, "utf8")) as { pid: number };
    // A package of a proposed environment can replace the environment's own `bin/python`.
    const parent = (await processStat(pid))?.parent;
    const starter = (await readFile(`/proc/${parent}/cmdline`, "utf8")).split("\0");
    expect(starter).toContain("--mount");
    const programs = starter.filter((word) => word.startsWith(path.join(state.stateDir, "environments")));
    expect(programs.filter((word) => path.basename(path.dirname(word)) === "bin")).toEqual([]);
  }, 30_000);

  it("keeps its variables from the programs that make its sandbox", async () => {
    const { pid } = JSON.parse(await readFile(own.paths.handle, "utf8")) as { pid: number };
    const maker = (await processStat(pid))?.parent;
    // A C library loads code from the folder in this variable.
    const variables = (await readFile(`/proc/${maker}/environ`, "utf8")).split("\0");
    expect(variables).toContain("SLUICE_SET_GCONV_PATH=/home/user/gconv");
    expect(variables.filter((each) => !/^(?:SLUICE_SET_|PATH=|LANG=|$)/.test(each))).toEqual([]);
    const said = await runCode(
      own.server,
      "import os; print(os.environ['GCONV_PATH'], 'SLUICE_SET_HOME' in os.environ)",
      { timeoutMs: 30_000 },
    );
    expect(said.trim()).toBe("/home/user/gconv False");
  }, 30_000);

  it("would have got it all without the sandbox (so the test can fail)", async () => {
    const program = await intruder(path.join(own.paths.run, "credential"), [state.stateDir]);
    const python = path.join(state.environment, "bin", "python");
    const talker = spawn(python, ["-c", TALKER, TALK], { stdio: ["pipe", "pipe", "inherit"] });
    await once(talker.stdout, "data");
    // This process must go on, because it greets connections.
    const { stdout: printed } = await promisify(execFile)(python, ["-c", program], { timeout: 60_000 });
    talker.stdin.end();
    await once(talker, "exit");
    const report = JSON.parse(printed.trim().split("\n").at(-1) ?? "") as Report;
    for (const name of ["the database password", "the signing key", "another home", "another workspace's credential"]) {
      expect(report.got[`read ${name}`]).toMatch(/^YES/);
    }
    expect(report.got["see the broker's process"]).toMatch(/^YES/);
    expect(report.got["become root in a namespace of its own"]).toMatch(/^YES/);
    expect(report.got["mount a file system in memory in a namespace of its own"]).toMatch(/^YES/);
    expect(report.got["connect to the database"]).toMatch(/^YES/);
    expect(report.got["listen to the other workspace's kernel"]).toMatch(/^YES/);
    for (const address of hostAddresses) expect(report.got[`connect to the host at ${address}`]).toMatch(/^YES/);
    expect(report.got["connect to an abstract socket of the host"]).toMatch(/^YES/);
    expect(report.found).toContain(`other diary in ${path.join(other.paths.home, "diary.txt")}`);
  });
});
