/**
 * Decisions over authenticated HTTP: 64 clients borrow and give back through one broker process, on a real PostgreSQL
 * with fsync and synchronous_commit on. The answer to a request is one decision; giving back is not counted. What was
 * held at once is recomputed from the ledger afterwards. `load_percent` is what this process, clients and simulated GPU
 * servers together, took of the machine's processors, which broker and PostgreSQL did not have.
 */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { Agent, request as send } from "node:http";
import { availableParallelism, tmpdir } from "node:os";
import path from "node:path";
import { sql } from "drizzle-orm";
import { joinSimulatedGpud, type SimulatedGpud } from "#server/broker/control/testing-gpud.ts";
import { systemContext } from "#server/context.ts";
import type { LeaseRequestAnswer } from "#server/contracts/lease.ts";
import { type Database, openDatabase } from "#server/db/client.ts";
import { startEmbeddedPostgres } from "#server/db/embedded.ts";
import { migrateDatabase } from "#server/db/migrate.ts";
import { createJoinToken } from "#server/services/gpu-server/create-join-token.ts";
import { makeTeam, makeWorkspace } from "#server/services/lease/testing.ts";
import { startBrokers } from "./overcommit/brokers.ts";
import { recompute } from "./overcommit.ts";

const CLIENTS = 64;
const TEAMS = 16;
const SERVERS = 2;
const DEVICES_EACH = 8;
/** No broker is killed while this runs. */
const NEVER_MS = 2 ** 30;

export const targets = { decisions_per_s: ">= 1000", grant_percent: ">= 60", overcommits: "0" };

export async function run(options: { seconds?: number } = {}): Promise<{ metrics: Record<string, number> }> {
  const seconds = options.seconds ?? 15;
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-lease-"));
  const server = await startEmbeddedPostgres(folder);
  await migrateDatabase(server.url);
  const database = openDatabase(server.url);
  await refuseUnsafe(database.db);
  const brokers = await startBrokers(1, { DATABASE_URL: server.url, SLUICE_STATE_DIR: folder }, NEVER_MS);
  const gpuds: SimulatedGpud[] = [];
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  try {
    for (let index = 0; index < SERVERS; index++) {
      const { token } = await createJoinToken(systemContext(database.db));
      const facts = { brokerUrl: brokers.url, joinToken: token, name: `gpu-${index}`, devices: DEVICES_EACH };
      gpuds.push(await joinSimulatedGpud({ ...facts, reconnects: true }));
    }
    const credentials = await makeClients(database.db);
    const tally: Tally = { ms: [], granted: 0 };
    const [began, worked] = [performance.now(), process.cpuUsage()];
    const until = began + seconds * 1000;
    await Promise.all(
      credentials.map(async (credential, index) => {
        const client = { base: brokers.url(), credential, agent, pid: index + 1 };
        while (performance.now() < until) await borrowOnce(client, tally);
      }),
    );
    const took = (performance.now() - began) / 1000;
    const { user, system } = process.cpuUsage(worked);
    const peaks = await recompute(database.db);
    const violations = [peaks.compute, peaks.memory, peaks.teams].flatMap((of) => [...of.values()]);
    const times = tally.ms.sort((a, b) => a - b);
    const quantile = (part: number) => times[Math.min(times.length - 1, Math.floor(times.length * part))] ?? 0;
    return {
      metrics: {
        decisions_per_s: times.length / took,
        grant_percent: (tally.granted / Math.max(1, times.length)) * 100,
        overcommits: violations.reduce((sum, peak) => sum + peak.violations, 0),
        decision_p50_ms: quantile(0.5),
        decision_p95_ms: quantile(0.95),
        load_percent: ((user + system) / 1e6 / took / availableParallelism()) * 100,
      },
    };
  } finally {
    agent.destroy();
    for (const gpud of gpuds) gpud.close();
    await brokers.stop();
    await database.close();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

type Tally = { ms: number[]; granted: number };
type Client = { base: string; credential: string; agent: Agent; pid: number };

/** A figure that was reached without durability says nothing. */
async function refuseUnsafe(db: Database): Promise<void> {
  for (const name of ["fsync", "synchronous_commit"]) {
    const [row] = await db.execute<{ value: string }>(sql`select current_setting(${name}) as value`);
    if (row?.value !== "on") throw new Error(`${name} is ${row?.value ?? "unknown"}, and must be on`);
  }
}

/** Teams whose limit lets three of their four clients borrow at once, so that some wait and most are granted. */
async function makeClients(db: Database): Promise<string[]> {
  const teams: string[] = [];
  for (let index = 0; index < TEAMS; index++) {
    teams.push(await makeTeam(db, `team-${index}`, { guaranteedMilli: 500, limitMilli: 750 }));
  }
  const credentials: string[] = [];
  for (let index = 0; index < CLIENTS; index++) {
    const made = await makeWorkspace(db, teams[index % TEAMS] ?? "", `client-${index}`);
    credentials.push(made.credential);
  }
  return credentials;
}

async function borrowOnce(client: Client, tally: Tally): Promise<void> {
  const owner = { kind: "kernel", pid: client.pid, startTime: 1 };
  const ask = { requestId: randomUUID(), amount: "0.25", waitSeconds: 0, owner };
  const began = performance.now();
  const answer = await call<LeaseRequestAnswer>(client, "POST", "/v1/lease-requests", ask);
  tally.ms.push(performance.now() - began);
  if (answer.state !== "granted") return;
  tally.granted += 1;
  await giveBack(client, answer.lease.id);
}

/** Until it is given back: a broker that is busy says so, and the next request of this client needs the room. */
async function giveBack(client: Client, leaseId: string): Promise<void> {
  for (;;) {
    const done = await call(client, "DELETE", `/v1/leases/${leaseId}`).then(
      () => true,
      (error: unknown) => (String(error).includes(": 503 ") ? false : Promise.reject(error as Error)),
    );
    if (done) return;
  }
}

/** One call on a connection that is kept; a failure ends the benchmark. */
async function call<T>(client: Client, method: string, path: string, body?: unknown): Promise<T> {
  return await new Promise<T>((resolve, reject) => {
    const headers = { authorization: `Bearer ${client.credential}` };
    const request = send(`${client.base}${path}`, { method, agent: client.agent, headers }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.once("error", reject);
      response.once("end", () => {
        const text = Buffer.concat(parts).toString("utf8");
        if (response.statusCode === 200) resolve(JSON.parse(text) as T);
        else reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`));
      });
    });
    request.once("error", reject);
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
