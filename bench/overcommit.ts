/**
 * 64 clients of 20 teams fight over 16 simulated devices through two brokers, which are killed with -9 in turn. What
 * was held at once is then recomputed from the ledger: `overcommits` counts every grant that went above a device, its
 * memory, or a team's limit.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { joinSimulatedGpud, type SimulatedGpud } from "#server/broker/control/testing-gpud.ts";
import { systemContext } from "#server/context.ts";
import { type Database, openDatabase } from "#server/db/client.ts";
import { startEmbeddedPostgres } from "#server/db/embedded.ts";
import { migrateDatabase } from "#server/db/migrate.ts";
import { gpus, leaseIntervals, leases, quotas } from "#server/db/schema/index.ts";
import { createJoinToken } from "#server/services/gpu-server/create-join-token.ts";
import { makeTeam, makeWorkspace } from "#server/services/lease/testing.ts";
import { borrow, emptyTally } from "./overcommit/borrower.ts";
import { type Brokers, startBrokers } from "./overcommit/brokers.ts";
import { type Peak, type Stretch, sweep } from "./overcommit/sweep.ts";

const CLIENTS = 64;
const TEAMS = 20;
const SERVERS = 4;
const DEVICES_EACH = 4;
const BROKERS = 2;
const KILL_EVERY_MS = 6_000;

export const targets = { overcommits: "0" };

export async function run(
  options: { seconds?: number; killEveryMs?: number } = {},
): Promise<{ metrics: Record<string, number> }> {
  const seconds = options.seconds ?? 60;
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-overcommit-"));
  const server = await startEmbeddedPostgres(folder);
  await migrateDatabase(server.url);
  const database = openDatabase(server.url);
  const brokers = await startBrokers(
    BROKERS,
    { DATABASE_URL: server.url, SLUICE_STATE_DIR: folder },
    options.killEveryMs ?? KILL_EVERY_MS,
  );
  const gpuds = await joinServers(database.db, brokers);
  try {
    const workspaces = await makeClients(database.db);
    const tally = emptyTally();
    const claim = (serverId: string, leaseId: string) => {
      gpuds.find((gpud) => gpud.serverId === serverId)?.send({ type: "session-opened", leaseId, sessionId: leaseId });
    };
    const until = Date.now() + seconds * 1000;
    await Promise.all(
      workspaces.map(async ({ credential }, index) => {
        await borrow({ brokerUrl: brokers.url, credential, index: index + 1, tally, claim }, until);
      }),
    );
    const peaks = await recompute(database.db);
    const violations = (of: Map<string, Peak>) => [...of.values()].reduce((sum, peak) => sum + peak.violations, 0);
    const times = tally.ms.sort((a, b) => a - b);
    const quantile = (part: number) => times[Math.min(times.length - 1, Math.floor(times.length * part))] ?? 0;
    return {
      metrics: {
        overcommits: violations(peaks.compute) + violations(peaks.memory) + violations(peaks.teams),
        decisions_per_s: tally.decisions / seconds,
        decision_p50_ms: quantile(0.5),
        decision_p95_ms: quantile(0.95),
        granted: tally.granted,
        queued: tally.queued,
        refused: tally.refused,
        cancelled: tally.cancelled,
        broker_kills: brokers.kills(),
        device_peak_milli: Math.max(0, ...[...peaks.compute.values()].map((peak) => peak.peak)),
      },
    };
  } finally {
    for (const gpud of gpuds) gpud.close();
    await brokers.stop();
    await database.close();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function joinServers(db: Database, brokers: Brokers): Promise<SimulatedGpud[]> {
  const gpuds: SimulatedGpud[] = [];
  for (let index = 0; index < SERVERS; index++) {
    const { token } = await createJoinToken(systemContext(db));
    const name = `gpu-${index}`;
    const facts = { brokerUrl: brokers.url, joinToken: token, name, devices: DEVICES_EACH, reconnects: true };
    gpuds.push(await joinSimulatedGpud(facts));
  }
  return gpuds;
}

/** Teams with limits from half a GPU to three, so that some wait for their limit and some for a device. */
async function makeClients(db: Database) {
  const teams = await Promise.all(
    Array.from({ length: TEAMS }, async (_, index) => {
      const limitMilli = 500 + (index % 6) * 500;
      return await makeTeam(db, `team-${index}`, { guaranteedMilli: Math.min(limitMilli, 750), limitMilli });
    }),
  );
  // The image that all share must exist before the workspaces that are made at once.
  const first = await makeWorkspace(db, teams[0] ?? "", "client-0");
  const others = Array.from({ length: CLIENTS - 1 }, async (_, index) => {
    return await makeWorkspace(db, teams[(index + 1) % TEAMS] ?? "", `client-${index + 1}`);
  });
  return [first, ...(await Promise.all(others))];
}

/** What was held at once, from the ledger. */
export async function recompute(db: Database) {
  const [intervals, held, devices, limits] = await Promise.all([
    db.select().from(leaseIntervals),
    db.select().from(leases),
    db.select().from(gpus),
    db.select().from(quotas),
  ]);
  const memoryOf = new Map(held.map((lease) => [lease.id, lease.memoryBytes]));
  const stretches = (
    key: (row: (typeof intervals)[number]) => string,
    amount: (row: (typeof intervals)[number]) => number,
  ) => intervals.map((row): Stretch => ({ key: key(row), amount: amount(row), from: row.startedAt, to: row.endedAt }));
  const capacity = new Map(devices.map((device) => [device.id, device.memoryBytes]));
  const limit = new Map(limits.map((row) => [`${row.teamId}/${row.gpuType}`, row.limitMilli]));
  return {
    compute: sweep(
      stretches(
        (row) => row.gpuId,
        (row) => row.milli,
      ),
      () => 1000,
    ),
    memory: sweep(
      stretches(
        (row) => row.gpuId,
        (row) => memoryOf.get(row.leaseId) ?? 0,
      ),
      (key) => capacity.get(key) ?? 0,
    ),
    teams: sweep(
      stretches(
        (row) => `${row.teamId}/${row.gpuType}`,
        (row) => row.milli,
      ),
      (key) => limit.get(key) ?? 0,
    ),
  };
}
