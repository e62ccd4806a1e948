/** Clients of the broker that leave before they have their answer. */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Broker, startBroker } from "#server/broker/broker.ts";
import { systemContext } from "#server/context.ts";
import type { LeaseRequestAnswer } from "#server/contracts/lease.ts";
import { gpuServers } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { logger } from "#server/log.ts";
import { createJoinToken } from "#server/services/gpu-server/create-join-token.ts";
import { makeTeam, makeWorkspace, type TestWorkspace } from "#server/services/lease/testing.ts";
import { joinSimulatedGpud } from "./control/testing-gpud.ts";

const LEAVERS = Number(process.env.SLUICE_TEST_LEAVERS ?? 100);
const SOON = { timeout: 15_000, interval: 25 };

let folder: string;
let database: TestDatabase;
let broker: Broker;
const brokerUrl = () => `http://127.0.0.1:${broker.port}`;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-leavers-"));
  database = await useTestDatabase({ max: 10 });
  broker = await startBroker({ database, env: { SLUICE_STATE_DIR: folder }, log: logger("test"), port: 0 });
}, 60_000);
afterAll(async () => {
  await broker.stop();
  await database.drop();
  await rm(folder, { recursive: true, force: true });
});

const joinToken = async () => (await createJoinToken(systemContext(database.db))).token;

/** Asks for the team's whole quota. */
async function ask({ credential }: TestWorkspace, pid: number): Promise<LeaseRequestAnswer> {
  const owner = { kind: "kernel", pid, startTime: 7, label: "kmeans.ipynb" };
  const response = await fetch(`${brokerUrl()}/v1/lease-requests`, {
    method: "POST",
    headers: { authorization: `Bearer ${credential}` },
    body: JSON.stringify({ requestId: randomUUID(), amount: "1", waitSeconds: 60, owner }),
  });
  return (await response.json()) as LeaseRequestAnswer;
}

it("ends the long polls of clients that leave", async () => {
  const gpud = await joinSimulatedGpud({ brokerUrl, joinToken: await joinToken(), name: "one", devices: 1 });
  const team = await makeTeam(database.db, `vision-${randomUUID()}`, { guaranteedMilli: 1000, limitMilli: 1000 });
  const workspace = await makeWorkspace(database.db, team, "Ada");
  expect(await ask(workspace, 1)).toMatchObject({ state: "granted" });
  const waiting = await ask(workspace, 2);
  if (waiting.state !== "queued") throw new Error(`not queued: ${JSON.stringify(waiting)}`);
  const polls = Array.from({ length: LEAVERS }, () => {
    const poll = request(`${brokerUrl()}/v1/lease-requests/${waiting.requestId}?wait=25`, {
      headers: { authorization: `Bearer ${workspace.credential}` },
      agent: false,
    });
    poll.on("error", () => undefined);
    poll.end();
    return poll;
  });
  await expect.poll(broker.waiting, SOON).toBe(LEAVERS);
  for (const poll of polls) poll.destroy();
  await expect.poll(broker.waiting, { timeout: 5_000, interval: 25 }).toBe(0);
  gpud.close();
}, 60_000);

it("keeps nothing of a gpud that leaves during its hello, and counts its server as lost", async () => {
  const gpud = await joinSimulatedGpud({ brokerUrl, joinToken: await joinToken(), name: "leaver", devices: 1 });
  const connected = async () => {
    const metrics = await (await fetch(`http://127.0.0.1:${broker.internalPort}/metrics`)).text();
    return /^sluice_control_connections (\d+)$/m.exec(metrics)?.[1];
  };
  const state = async () => {
    const [row] = await database.db.select().from(gpuServers).where(eq(gpuServers.id, gpud.serverId));
    return row?.state;
  };
  gpud.cut();
  await expect.poll(connected, SOON).toBe("0");
  const challenges = () => gpud.received.filter(({ type }) => type === "challenge").length;
  // The lock holds the hello until gpud has left.
  await database.sql.begin(async (tx) => {
    await tx`select 1 from gpu_servers where id = ${gpud.serverId} for update`;
    gpud.connect().catch(() => undefined);
    await expect.poll(challenges, SOON).toBe(2);
    await sleep(300);
    gpud.cut();
    await sleep(300);
  });
  await expect.poll(state, SOON).toBe("lost");
  await sleep(500);
  expect(await connected()).toBe("0");
}, 60_000);
